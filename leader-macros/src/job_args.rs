//! What `#[cron]` and `#[every]` on one function say: the schedules of one job, and its options.

use std::time::Duration;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::token::Paren;
use syn::{Attribute, Error, Ident, LitStr, MacroDelimiter, Meta, MetaList, Result, Token};

use crate::args::{self, Text};
use crate::function;
use crate::policy::Policy;
use crate::schedule;
use crate::time::Time;

/// The attributes that give a schedule.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Cron,
    Every,
}

/// Their names.
pub(crate) const NAMES: &[&str] = &[CRON.name, EVERY.name];

const OPTIONS: &[(&str, &str)] = &[
    ("tz", "tz = \"Europe/Berlin\""),
    ("name", "name = \"…\""),
    ("missed", "missed = \"once\""),
    ("within", "within = \"10m\""),
    ("overlap", "overlap = \"forbid\""),
    ("delivery", "delivery = \"at-most-once\""),
    ("timeout", "timeout = \"5m\""),
    ("jitter", "jitter = \"30s\""),
    ("renamed_from", "renamed_from = \"…\""),
    ("crate", "crate = path"),
];

const CRON: args::Attribute = args::Attribute { name: "cron", options: OPTIONS };
/// All options but the time zone.
const EVERY: args::Attribute = args::Attribute { name: "every", options: OPTIONS.split_at(1).1 };

/// The shortest and the longest interval.
const SECOND: Duration = Duration::from_secs(1);
const YEAR: Duration = Duration::from_secs(366 * 86_400);

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        self.attribute().name
    }

    fn attribute(self) -> args::Attribute {
        match self {
            Self::Cron => CRON,
            Self::Every => EVERY,
        }
    }

    /// Which one an attribute is, by the last segment of its path: what that is a name for can no macro see.
    fn of(attr: &Attribute) -> Option<Self> {
        let last = &attr.path().segments.last()?.ident;
        [Self::Cron, Self::Every].into_iter().find(|kind| last == kind.name())
    }
}

/// What a schedule says that another attribute has read.
const TAKEN: &str = "__taken";

/// Takes the schedules of a function. Their attributes stay, and say that they were taken: without them the user's imports of
/// them would be unused.
pub(crate) fn take(attrs: &mut [Attribute]) -> Vec<(Kind, Attribute)> {
    let taken = attrs.iter_mut().filter_map(|attr| {
        let kind = Kind::of(attr)?;
        let taken = MetaList {
            path: attr.path().clone(),
            delimiter: MacroDelimiter::Paren(Paren::default()),
            tokens: Ident::new(TAKEN, Span::call_site()).into_token_stream(),
        };
        let before = Attribute { meta: Meta::List(taken), ..attr.clone() };
        Some((kind, std::mem::replace(attr, before))).filter(|(_, attr)| !was_taken(attr))
    });
    taken.collect()
}

fn was_taken(attr: &Attribute) -> bool {
    matches!(&attr.meta, Meta::List(list) if is_taken(&list.tokens))
}

/// Whether another attribute has read these arguments.
pub(crate) fn is_taken(args: &TokenStream) -> bool {
    args.clone().into_iter().next().is_some_and(|token| matches!(token, TokenTree::Ident(ident) if ident == TAKEN))
}

enum Timing {
    Cron { expression: Text, tz: Option<LitStr> },
    Every(Time),
}

/// Of one job.
pub(crate) struct JobArgs {
    /// In the order in which they are written; empty if all are wrong.
    timings: Vec<Timing>,
    name: Option<LitStr>,
    renamed_from: Option<LitStr>,
    policy: Policy,
    pub(crate) krate: TokenStream,
    /// The options that were given, but for those that each schedule has for itself.
    seen: Vec<Ident>,
}

impl JobArgs {
    /// `krate`: where `leader-cron` is, unless an option says it.
    pub(crate) fn new(krate: TokenStream) -> Self {
        let (name, renamed_from) = (None, None);
        Self { timings: Vec::new(), name, renamed_from, policy: Policy::default(), krate, seen: Vec::new() }
    }

    /// Reads what stands in the parentheses of one attribute.
    pub(crate) fn read(&mut self, kind: Kind, tokens: TokenStream) -> Result<()> {
        (|input: ParseStream<'_>| self.parse(kind, input)).parse2(tokens)
    }

    /// Reads attributes that were taken off a function.
    pub(crate) fn read_all(&mut self, attrs: &[(Kind, Attribute)]) -> Result<()> {
        let read = |(kind, attr): &(Kind, Attribute)| match &attr.meta {
            Meta::List(list) if !list.tokens.is_empty() => self.read(*kind, list.tokens.clone()).err(),
            _ => Some(nothing_first(*kind, attr.path().span())),
        };
        function::all(attrs.iter().filter_map(read))
    }

    /// What does not go together, once all is read.
    pub(crate) fn check(&self) -> Result<()> {
        self.policy.check()
    }

    fn parse(&mut self, kind: Kind, input: ParseStream<'_>) -> Result<()> {
        // Nothing, or an option in the schedule's place.
        if input.is_empty() || input.peek2(Token![=]) {
            return Err(nothing_first(kind, input.span()));
        }
        let timing = match kind {
            Kind::Cron => Timing::Cron { expression: expression(input)?, tz: None },
            Kind::Every => Timing::Every(period(input)?),
        };
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        let mut zone = None;
        let given = kind.attribute().parse_after(&self.seen, input, |option, input| {
            match option {
                "tz" => zone = Some(time_zone(input)?),
                "name" => self.name = Some(args::key_name_literal(input)?),
                "renamed_from" => self.renamed_from = Some(args::key_name_literal(input)?),
                "crate" => self.krate = args::crate_path(input)?,
                other => self.policy.take(other, input)?,
            }
            Ok(())
        })?;
        self.seen.extend(given.into_iter().filter(|option| option != "tz"));
        self.timings.push(match timing {
            Timing::Cron { expression, .. } => Timing::Cron { expression, tz: zone },
            every => every,
        });
        Ok(())
    }

    /// The slice of its schedules.
    pub(crate) fn schedules(&self) -> TokenStream {
        let krate = &self.krate;
        let timings = self.timings.iter().map(|timing| match timing {
            Timing::Cron { expression, tz } => {
                let zone = match tz {
                    Some(tz) => quote!(::core::option::Option::Some(#tz)),
                    None => quote!(::core::option::Option::None),
                };
                quote!(#krate::__private::Timing::Cron { expression: #expression, zone: #zone })
            }
            // As a field, as the type of an argument is reported at the whole attribute.
            Timing::Every(period) => quote!(#krate::__private::Timing::Every { 0: #period }),
        });
        quote!(&[#(#timings),*])
    }

    /// Its name, if the function's own is `own`.
    pub(crate) fn name(&self, own: &str) -> TokenStream {
        self.name.as_ref().map_or_else(|| own.to_token_stream(), ToTokens::to_token_stream)
    }

    /// The name that it had before, if that was given.
    pub(crate) fn renamed_from(&self) -> TokenStream {
        match &self.renamed_from {
            Some(old_name) => quote!(::core::option::Option::Some(#old_name)),
            None => quote!(::core::option::Option::None),
        }
    }

    pub(crate) fn policy(&self) -> TokenStream {
        self.policy.tokens(&self.krate)
    }
}

fn nothing_first(kind: Kind, at: Span) -> Error {
    Error::new(
        at,
        match kind {
            Kind::Cron => "a cron expression comes first: `#[cron(\"0 */5 * * * *\")]`",
            Kind::Every => "a length of time comes first: `#[every(\"5m\")]`",
        },
    )
}

fn expression(input: ParseStream<'_>) -> Result<Text> {
    let text = input.parse()?;
    if let Text::Literal(expression) = &text {
        schedule::check(&expression.value()).map_err(|reason| Error::new(expression.span(), reason))?;
    }
    Ok(text)
}

fn period(input: ParseStream<'_>) -> Result<Time> {
    let at = input.span();
    let time = Time::parse(input, &(SECOND..=YEAR))?;
    match &time {
        Time::Known(period) if period.subsec_nanos() > 0 => {
            Err(Error::new(at, "ticks are whole seconds, and so is the time between them: write one such as \"30s\""))
        }
        _ => Ok(time),
    }
}

/// Only the look of a name is checked: which zones there are is known at start.
fn time_zone(input: ParseStream<'_>) -> Result<LitStr> {
    let literal = args::string(input)?;
    let name = literal.value();
    let looks_right = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "/_+-".contains(c));
    if looks_right {
        Ok(literal)
    } else {
        Err(Error::new(
            literal.span(),
            format!("`{name}` is not the name of a time zone, such as `Europe/Berlin` or `UTC`"),
        ))
    }
}
