//! The key of a lock, as an attribute gives it: a text with the function's arguments in it, or an expression.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, Lit, LitStr, Result};

use crate::args::ungroup;
use crate::locked::Kind;

pub(crate) enum Key {
    /// As it is.
    Text(LitStr),
    /// With braces in it.
    Interpolated(LitStr),
    Expr(Expr),
}

impl Key {
    pub(crate) fn parse(input: ParseStream<'_>, kind: &Kind) -> Result<Self> {
        match ungroup(input.parse()?) {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
                let interpolated = text.value().contains(['{', '}']);
                check(&text, interpolated, kind)?;
                check_names(&text)?;
                Ok(if interpolated { Self::Interpolated(text) } else { Self::Text(text) })
            }
            Expr::Lit(other) => {
                let message = format!("a key is text: `key = {:?}`, or an expression", kind.key);
                Err(Error::new(other.span(), message))
            }
            expr => Ok(Self::Expr(expr)),
        }
    }

    /// A reference to it: what it is made of is only looked at.
    pub(crate) fn reference(&self, krate: &TokenStream) -> TokenStream {
        match self {
            Self::Text(text) => quote!(#text),
            // The braces are read as in `format!`, and so are mistakes in them.
            Self::Interpolated(text) => quote!(&#krate::__private::key(::core::format_args!(#text))),
            // Whatever operators are in it. A type that is no text is reported at it.
            Self::Expr(expr) => quote_spanned!(Span::mixed_site().located_at(expr.span())=> &(#expr)),
        }
    }
}

/// What is known of a key before anything is put into it.
fn check(text: &LitStr, interpolated: bool, kind: &Kind) -> Result<()> {
    let longest = kind.longest_key;
    let key = text.value();
    let reason = if key.is_empty() {
        "an empty key cannot be used".to_owned()
    } else if let Some(control) = key.chars().find(|c| c.is_control()) {
        format!("`{}` cannot stand in a key", control.escape_default())
    } else if !interpolated && key.len() > longest {
        format!("{} bytes are too many for this key: it can have {longest}", key.len())
    } else {
        return Ok(());
    };
    Err(Error::new(text.span(), format!("{reason}; write one such as {:?}", kind.plain_key)))
}

/// `format!` says of these that they are not possible, and proposes what is not possible here.
fn check_names(text: &LitStr) -> Result<()> {
    let key = text.value().replace("{{", "");
    for (_, braces) in key.match_indices('{').map(|(at, _)| key.split_at(at + 1)) {
        let name = braces.split(['}', ':']).next().unwrap_or_default();
        if name.contains(['.', '(', '[']) {
            let message = format!(
                "`{name}` is more than a name: make the key an expression, such as `key = format!(\"billing:{{}}\", {name})`"
            );
            return Err(Error::new(text.span(), message));
        }
    }
    Ok(())
}
