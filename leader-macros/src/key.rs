//! The key of a lock, as an attribute gives it: a text with the function's arguments in it, or an expression.

mod template;

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
                let refused = |message| Error::new(text.span(), message);
                let interpolated = template::check(&text.value(), kind.longest_key, kind.plain_key).map_err(refused)?;
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
