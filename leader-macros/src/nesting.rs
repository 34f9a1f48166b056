//! The order in which attributes on one function take effect: gate, then lock, then run-once, then the body.
//!
//! An attribute wraps the body as it finds it. The one that is written first is expanded first, and would end up innermost; so
//! one that has to be further out puts itself behind those that are still to be expanded.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote;
use syn::parse::Parser;
use syn::{Attribute, Error, Meta, Result};

use crate::function::{Function, mentions};

/// Those that a lock goes around.
pub(crate) const INSIDE_LOCKS: &[&str] = &["run_once"];
/// Those that a gate goes around.
pub(crate) const INSIDE_GATES: &[&str] = &["with_lock", "run_once"];

/// What those that a lock must not go around have expanded to: a name in `__private`, and the attribute.
pub(crate) const AROUND_LOCKS: &[(&str, &str)] = &[("CallSite", "leader_only")];
/// The same for run-once.
pub(crate) const AROUND_ONCE: &[(&str, &str)] = &[("CallSite", "leader_only"), ("with_lock", "with_lock")];

/// One of `around` was expanded before `name`, and is inside now: it did not know this one, which has another name here, or was
/// put there by yet another attribute.
pub(crate) fn reject_inside(around: &[(&str, &str)], function: &Function, name: &str) -> Result<()> {
    let Some((_, inner)) = around.iter().find(|(sign, _)| calls(function.body(), sign)) else { return Ok(()) };
    Err(Error::new(
        Span::call_site(),
        format!(
            "this would go around `#[{inner}]`, which did not know it for a `#[{name}]`: write it above `#[{inner}]`, or \
             call it by its own name"
        ),
    ))
}

/// Whether `__private::name` is anywhere in these tokens.
fn calls(tokens: TokenStream, name: &str) -> bool {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let is = |token: &TokenTree, word: &str| matches!(token, TokenTree::Ident(ident) if ident == word);
    tokens.windows(4).any(|path| is(&path[0], "__private") && is(&path[3], name))
        || tokens.into_iter().any(|token| matches!(token, TokenTree::Group(group) if calls(group.stream(), name)))
}

/// Puts the attribute that is being expanded, `name` of the crate `krate`, behind the last of `inner` that is still to be
/// expanded; `false` if there is none. They are known by the last segment of their paths: what they are a name for can no macro
/// see.
pub(crate) fn put_behind(
    inner: &[&str],
    function: &mut Function,
    (krate, name): (&TokenStream, &str),
    args: &TokenStream,
) -> Result<bool> {
    let Some(last) = function.attrs.iter().rposition(|attr| is_one_of(inner, attr)) else { return Ok(false) };
    let name = syn::Ident::new(name, Span::call_site());
    let itself = Attribute::parse_outer.parse2(quote!(#[#krate::#name(#args)]))?;
    function.attrs.splice(last + 1..last + 1, itself);
    Ok(true)
}

/// Whether this may come to be one of `names`.
pub(crate) fn is_undecided(names: &[&str], attr: &Attribute) -> bool {
    attr.path().is_ident("cfg_attr") && is_one_of(names, attr)
}

fn is_one_of(names: &[&str], attr: &Attribute) -> bool {
    let path = attr.path();
    if path.is_ident("cfg_attr") {
        // Not decided yet. If it comes to nothing, one that has put itself behind it has lost nothing by that.
        let Meta::List(list) = &attr.meta else { return false };
        return names.iter().any(|name| mentions(list.tokens.clone(), name));
    }
    path.segments.last().is_some_and(|last| names.iter().any(|name| last.ident == name))
}
