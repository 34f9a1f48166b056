//! The order in which attributes on one function take effect: gate, then lock, then run-once, then the body.
//!
//! An attribute wraps the body as it finds it. The one that is written first is expanded first, and would end up innermost; so
//! one that has to be further out puts itself behind those that are still to be expanded.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::Parser;
use syn::{Attribute, Meta, Result};

use crate::function::{Function, mentions};

/// Those that a lock goes around.
pub(crate) const INSIDE_LOCKS: &[&str] = &["run_once"];
/// Those that a gate goes around.
pub(crate) const INSIDE_GATES: &[&str] = &["with_lock", "run_once"];

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
    let name = syn::Ident::new(name, proc_macro2::Span::call_site());
    let itself = Attribute::parse_outer.parse2(quote!(#[#krate::#name(#args)]))?;
    function.attrs.splice(last + 1..last + 1, itself);
    Ok(true)
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
