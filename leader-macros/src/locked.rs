//! What `#[with_lock]` and `#[run_once]` have in common: most options, and what is returned where the body was not run, or
//! does not count.

use std::time::Duration;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Error, Expr, Lit, Result, Type};

use crate::args::{self, Attribute};
use crate::function::{self, Function};
use crate::key::Key;
use crate::output::{self, Output, inner_type};
use crate::time::Time;

const MS: Duration = Duration::from_millis(1);
/// How long a lock may last without being renewed.
const SHORTEST_TTL: Duration = Duration::from_millis(100);
const LONGEST_TTL: Duration = Duration::from_secs(3600);

/// What tells the two attributes apart.
pub(crate) struct Kind {
    /// What the body runs under.
    pub(crate) held: &'static str,
    /// The longest key, in bytes.
    pub(crate) longest_key: usize,
    /// A key with an argument in it, and one without.
    pub(crate) key: &'static str,
    pub(crate) plain_key: &'static str,
}

pub(crate) struct Args {
    pub(crate) key: Key,
    pub(crate) ttl: Option<Time>,
    pub(crate) wait: Option<Time>,
    pub(crate) keep: Option<Time>,
    /// Where the lock is not had, the call is skipped.
    skip: bool,
    skipped: Option<Expr>,
    /// What becomes of the body when the lock is lost, and the word that says so.
    pub(crate) on_loss: Option<(OnLoss, Span)>,
    lost: Option<Expr>,
    /// What the body runs under, for messages.
    held: &'static str,
    pub(crate) krate: TokenStream,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnLoss {
    Cancel,
    Finish,
}

impl Args {
    pub(crate) fn parse(attribute: &Attribute, kind: &Kind, input: ParseStream<'_>) -> Result<Self> {
        if input.peek(Lit) {
            let value: Lit = input.parse()?;
            let message = format!("an option has a name: `key = {}`", value.to_token_stream());
            return Err(Error::new(value.span(), message));
        }
        let (mut key, mut ttl, mut wait, mut keep) = (None, None, None, None);
        let (mut skip, mut skipped, mut on_loss, mut lost) = (false, None, None, None);
        let mut krate = quote!(::leader_core);
        attribute.parse(input, |option, input| {
            let value = input.span();
            match option {
                "key" => key = Some(Key::parse(input, kind)?),
                "ttl" => ttl = Some(Time::parse(input, &(SHORTEST_TTL..=LONGEST_TTL))?),
                "wait" => wait = Some(Time::parse(input, &(Duration::ZERO..=Duration::MAX))?),
                "keep" => keep = Some(Time::parse(input, &(MS..=Duration::MAX))?),
                "on_busy" => skip = args::choice(input, &["error", "skip"])? == 1,
                "skipped" => skipped = Some(input.parse()?),
                "on_loss" => {
                    let choices = [OnLoss::Cancel, OnLoss::Finish];
                    on_loss = Some((choices[args::choice(input, &["cancel", "finish"])?], value));
                }
                "lost" => lost = Some(input.parse()?),
                _ => krate = args::crate_path(input)?,
            }
            Ok(())
        })?;
        let Some(key) = key else {
            let message = format!("`#[{}]` needs a key: `key = {:?}`", attribute.name, kind.key);
            return Err(Error::new(Span::call_site(), message));
        };
        Ok(Self { key, ttl, wait, keep, skip, skipped, on_loss, lost, held: kind.held, krate })
    }

    /// Why this cannot be had of this function, where that can be seen in what is written. The compiler finds the rest in the
    /// types.
    pub(crate) fn reject_for(&self, name: &str, function: &Function) -> Result<()> {
        let mut reasons = Vec::new();
        if let Some((OnLoss::Cancel, span)) = self.on_loss
            && !function.is_async()
        {
            reasons.push(Error::new(
                span,
                "only async work can be cancelled, at an await: make this an `async fn`, or leave `on_loss` out and ask \
                 `leader_core::held_lock()` in long loops whether it is still held",
            ));
        }
        match function.output() {
            Output::Unit => reasons.extend(self.reject_unit(name, function.sig.ident.span()).err()),
            Output::Named(ty) if matches!(inner_type(ty), Type::Tuple(unit) if unit.elems.is_empty()) => {
                reasons.extend(self.reject_unit(name, ty.span()).err());
            }
            Output::Unnamed(Some(ty)) if matches!(inner_type(ty), Type::ImplTrait(_)) && !self.says_all() => {
                reasons.push(Error::new(
                    ty.span(),
                    format!(
                        "an `impl Trait` can neither be made up nor tell of a {}: name the type, or say what is returned \
                         instead: `on_busy = \"skip\", skipped = EXPR, lost = EXPR`",
                        self.held
                    ),
                ));
            }
            _ => {}
        }
        function::all(reasons)
    }

    /// Nothing has to be known of the type that the function returns.
    fn says_all(&self) -> bool {
        self.skip && self.skipped.is_some() && self.lost.is_some()
    }

    fn reject_unit(&self, name: &str, place: Span) -> Result<()> {
        let instead = match (self.skip, &self.lost) {
            (true, Some(_)) => return Ok(()),
            (false, Some(_)) => "on_busy = \"skip\"",
            (true, None) => "lost = ()",
            (false, None) => "on_busy = \"skip\", lost = ()",
        };
        let held = self.held;
        let when = if self.skip { "was lost" } else { "was not had" };
        Err(Error::new(
            place,
            format!(
                "a function with `#[{name}]` that returns nothing cannot tell that its {held} {when}: return `Result<(), E>` \
                 with `E: From<LockError>`, or let that pass: `{instead}`"
            ),
        ))
    }

    /// `skipped` is never used otherwise.
    pub(crate) fn reject_skipped_without_skip(&self) -> Result<()> {
        match &self.skipped {
            Some(value) if !self.skip => Err(Error::new(
                value.span(),
                "this is what is returned where the lock is not had, with `on_busy = \"skip\"`: add that",
            )),
            _ => Ok(()),
        }
    }

    /// What is returned where the lock was not had; `error` says why.
    pub(crate) fn not_had(&self, function: &Function, error: &Ident) -> TokenStream {
        let krate = &self.krate;
        if self.skip {
            let site = function.site(krate);
            return then(&quote!(#krate::__private::log_skip(&#error, &#site)), &self.skipped(function));
        }
        let not_had = function.output().function(krate, "CarriesLockError", "not_had");
        quote!(#not_had(#error))
    }

    /// What is returned where the lock was not held to the end of the body; `loss` says the rest.
    pub(crate) fn lost(&self, function: &Function, loss: &Ident) -> TokenStream {
        if let Some(value) = &self.lost {
            return then(&quote!(#loss.log()), &output::value(value));
        }
        // Of a type that can tell neither of the two, only the first is reported.
        let carries = if self.skip { "CarriesLoss" } else { "CarriesLockError" };
        let lost = function.output().function(&self.krate, carries, "lost");
        quote!(#lost(#loss))
    }

    /// What a call returns that is skipped.
    pub(crate) fn skipped(&self, function: &Function) -> TokenStream {
        function.output().skipped(&self.krate, self.skipped.as_ref())
    }

    /// The methods that hand over the lengths of time.
    pub(crate) fn times(&self) -> TokenStream {
        let time = |method: &str, time: &Option<Time>| {
            let method = Ident::new(method, Span::call_site());
            time.as_ref().map(|time| quote!(.#method(#time)))
        };
        let all = [time("ttl", &self.ttl), time("wait", &self.wait), time("keep", &self.keep)];
        all.into_iter().flatten().collect()
    }
}

/// A call that results in nothing, and then a value. Of a `()` behind a statement, clippy would say that it is one too many.
fn then(call: &TokenStream, value: &TokenStream) -> TokenStream {
    if value.to_string() == "()" { call.clone() } else { quote!({ #call; #value }) }
}

/// The names in an expansion, where no code of the user sees them.
pub(crate) struct Names {
    pub(crate) call: Ident,
    pub(crate) holding: Ident,
    pub(crate) done: Ident,
    pub(crate) error: Ident,
    pub(crate) loss: Ident,
}

impl Names {
    pub(crate) fn new() -> Self {
        let name = |name| Ident::new(name, Span::mixed_site());
        Self {
            call: name("call"),
            holding: name("holding"),
            done: name("done"),
            error: name("error"),
            loss: name("loss"),
        }
    }
}
