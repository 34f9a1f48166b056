//! The policies of a job, as `#[cron]` gives them.

use std::ops::RangeInclusive;
use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::ParseStream;
use syn::{Error, LitStr, Result};

use crate::args;
use crate::time::Time;

const MILLISECOND: Duration = Duration::from_millis(1);
const YEAR: Duration = Duration::from_secs(366 * 86_400);
const ANY: RangeInclusive<Duration> = MILLISECOND..=YEAR;

/// What was given; what was not has the default of leader-cron.
#[derive(Default)]
pub(crate) struct Policy {
    /// The number of the word, and where it stands.
    missed: Option<(usize, Span)>,
    overlap: Option<(usize, Span)>,
    delivery: Option<(usize, Span)>,
    within: Option<(TokenStream, Span)>,
    timeout: Option<Time>,
    jitter: Option<Time>,
}

impl Policy {
    /// Reads the value of one option.
    pub(crate) fn take(&mut self, option: &str, input: ParseStream<'_>) -> Result<()> {
        let span = input.span();
        match option {
            "missed" => self.missed = Some((args::choice(input, &["once", "skip", "all"])?, span)),
            "overlap" => self.overlap = Some((args::choice(input, &["forbid", "allow"])?, span)),
            "delivery" => self.delivery = Some((args::choice(input, &["at-most-once", "at-least-once"])?, span)),
            "within" => self.within = Some((within(input)?, span)),
            "timeout" => self.timeout = Some(Time::parse(input, &ANY)?),
            _ => self.jitter = Some(Time::parse(input, &ANY)?),
        }
        Ok(())
    }

    /// What does not go together, as far as it is known here.
    pub(crate) fn check(&self) -> Result<()> {
        if let (Some((1, _)), Some((_, span))) = (&self.missed, &self.within) {
            let message = "`within` says how old a missed tick may be that is run, and `missed = \"skip\"` runs none: leave one \
                           of them out";
            return Err(Error::new(*span, message));
        }
        if let (Some((1, span)), Some((1, _))) = (&self.overlap, &self.delivery) {
            let message = "`delivery = \"at-least-once\"` tells a run that died by its slot, of which a job has one: leave out \
                           `overlap = \"allow\"`";
            return Err(Error::new(*span, message));
        }
        Ok(())
    }

    pub(crate) fn tokens(&self, krate: &TokenStream) -> TokenStream {
        let word =
            |given: Option<(usize, Span)>, words: &[TokenStream]| words[given.map_or(0, |(word, _)| word)].clone();
        let missed = word(self.missed, &[quote!(Once), quote!(Skip), quote!(All)]);
        let overlap = word(self.overlap, &[quote!(Forbid), quote!(Allow)]);
        let delivery = word(self.delivery, &[quote!(AtMostOnce), quote!(AtLeastOnce)]);
        let some = |time: Option<TokenStream>| match time {
            Some(time) => quote!(::core::option::Option::Some(#time)),
            None => quote!(::core::option::Option::None),
        };
        let within = some(self.within.as_ref().map(|(within, _)| within.clone()));
        let timeout = some(self.timeout.as_ref().map(ToTokens::to_token_stream));
        let jitter =
            self.jitter.as_ref().map_or_else(|| quote!(::core::time::Duration::ZERO), ToTokens::to_token_stream);
        quote! {
            #krate::__private::Policy {
                missed: #krate::__private::Missed::#missed,
                within: #within,
                overlap: #krate::__private::Overlap::#overlap,
                delivery: #krate::__private::Delivery::#delivery,
                timeout: #timeout,
                jitter: #jitter,
            }
        }
    }
}

/// A length of time, or `"forever"`.
fn within(input: ParseStream<'_>) -> Result<TokenStream> {
    if input.fork().parse::<LitStr>().is_ok_and(|text| text.value() == "forever") {
        input.parse::<LitStr>()?;
        return Ok(quote!(::core::time::Duration::MAX));
    }
    Ok(Time::parse(input, &ANY)?.into_token_stream())
}
