//! A length of time, as an attribute gives it: `"240s"`, or an expression.

use std::ops::RangeInclusive;
use std::time::Duration;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, Lit, Result};

use crate::args::ungroup;

/// Known when the function is compiled, or when it is called.
pub(crate) enum Time {
    Known(Duration),
    Expr(Expr),
}

impl Time {
    /// A time that lies in `range`; one that is only known later is checked then.
    pub(crate) fn parse(input: ParseStream<'_>, range: &RangeInclusive<Duration>) -> Result<Self> {
        let (literal, given) = match ungroup(input.parse()?) {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => (text.span(), text.value()),
            Expr::Lit(other) => {
                let message =
                    "a length of time has a unit: write it as text, \"30s\", or as an expression of type `Duration`";
                return Err(Error::new(other.span(), message));
            }
            expr => return Ok(Self::Expr(expr)),
        };
        let time = humantime::parse_duration(&given).map_err(|error| {
            let message =
                format!("`{given}` is no length of time: {error}; write one such as \"500ms\", \"30s\" or \"1h\"");
            Error::new(literal, message)
        })?;
        if range.contains(&time) {
            return Ok(Self::Known(time));
        }
        let rule = if time < *range.start() {
            format!("at least {}", told(*range.start()))
        } else {
            format!("at most {}", told(*range.end()))
        };
        Err(Error::new(literal, format!("`{given}` is not possible: this is {rule}")))
    }
}

/// As it would be written there: `1h`, and not 3600s; 366 days, and not a year and some hours.
fn told(time: Duration) -> String {
    const DAY: u64 = 86_400;
    match time.as_secs() / DAY {
        days @ 2.. if time == Duration::from_secs(days * DAY) => format!("{days} days"),
        _ => humantime::format_duration(time).to_string(),
    }
}

impl ToTokens for Time {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Known(time) => {
                let (seconds, nanos) = (time.as_secs(), time.subsec_nanos());
                tokens.extend(quote!(::core::time::Duration::new(#seconds, #nanos)));
            }
            Self::Expr(expr) => expr.to_tokens(tokens),
        }
    }
}
