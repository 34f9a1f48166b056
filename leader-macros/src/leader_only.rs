//! `#[leader_only]`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Expr, Lit, Result, Type};

use crate::args::{self, Attribute, Text};
use crate::function::{self, Function};
use crate::nesting;
use crate::output::{Output, inner_type};

const NAME: &str = "leader_only";

const ATTRIBUTE: Attribute = Attribute {
    name: NAME,
    options: &[
        ("group", "group = \"…\""),
        ("skipped", "skipped = EXPR"),
        ("on_loss", "on_loss = \"cancel\""),
        ("crate", "crate = path"),
    ],
};

struct Args {
    group: Text,
    skipped: Option<Expr>,
    /// The word in the attribute that asked for it.
    cancel: Option<Span>,
    krate: TokenStream,
}

impl Parse for Args {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.peek(Lit) {
            let value: Lit = input.parse()?;
            let message = format!("an option has a name: `group = {}`", value.to_token_stream());
            return Err(Error::new(value.span(), message));
        }
        let (mut group, mut skipped, mut cancel) = (None, None, None);
        let mut krate = quote!(::leader_core);
        ATTRIBUTE.parse(input, |option, input| {
            let value = input.span();
            match option {
                "group" => group = Some(args::key_name(input)?),
                "skipped" => skipped = Some(input.parse()?),
                "on_loss" => cancel = (args::choice(input, &["finish", "cancel"])? == 1).then_some(value),
                _ => krate = args::crate_path(input)?,
            }
            Ok(())
        })?;
        let group = group.unwrap_or_else(|| Text::Literal(syn::LitStr::new("default", Span::call_site())));
        Ok(Self { group, skipped, cancel, krate })
    }
}

pub(crate) fn expand(args: TokenStream, item: TokenStream) -> TokenStream {
    try_expand(args, item.clone()).unwrap_or_else(|error| function::keep(error, item))
}

fn try_expand(tokens: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut function = Function::read(NAME, item)?;
    let args: Args = function::both(syn::parse2(tokens.clone()), function.reject_unsupported(NAME))?;
    reject_what_it_cannot_do(&function, &args)?;
    if nesting::put_behind(nesting::INSIDE_GATES, &mut function, (&args.krate, NAME), &tokens)? {
        return Ok(function.into_token_stream());
    }

    let Args { group, krate, .. } = &args;
    let site = function.site(krate);
    let on_loss = if args.cancel.is_some() { quote!(Cancel) } else { quote!(Finish) };
    let skipped = function.output().skipped(krate, args.skipped.as_ref());
    let is_async = function.is_async();
    let entry = Ident::new("entry", Span::mixed_site());
    let done = Ident::new("done", Span::mixed_site());
    function.wrap(NAME, |work| {
        let run = match (is_async, args.cancel) {
            (false, _) => quote!(#entry.run_sync(#work)),
            (true, None) => quote!(#entry.run(#work).await),
            (true, Some(_)) => quote! {
                match #entry.run_cancellable(#work).await {
                    ::core::option::Option::Some(#done) => #done,
                    ::core::option::Option::None => #skipped,
                }
            },
        };
        // The items stand in a block of their own, where the body cannot see them.
        quote! {
            let ::core::option::Option::Some(#entry) = ({
                const __LEADER_GROUP: &::core::primitive::str = #group;
                const __LEADER_SITE: #krate::__private::Site = #site;
                static __LEADER_CALL_SITE: #krate::__private::CallSite =
                    #krate::__private::CallSite::new(__LEADER_GROUP, __LEADER_SITE);
                #krate::__private::inventory::submit! {
                    #krate::__private::GroupRegistration { group: __LEADER_GROUP, site: __LEADER_SITE }
                }
                __LEADER_CALL_SITE.enter(#krate::__private::OnLoss::#on_loss)
            }) else {
                return #skipped;
            };
            #run
        }
    })?;
    Ok(function.into_token_stream())
}

fn reject_what_it_cannot_do(function: &Function, args: &Args) -> Result<()> {
    let mut reasons = Vec::new();
    if let Some(span) = args.cancel
        && !function.is_async()
    {
        reasons.push(Error::new(
            span,
            "only async work can be cancelled, at an await: make this an `async fn`, or leave `on_loss` out and ask \
             `leader_core::lease()` in long loops whether it is still held",
        ));
    }
    if let Output::Unnamed(Some(ty)) = function.output()
        && let Type::ImplTrait(_) = inner_type(ty)
        && args.skipped.is_none()
    {
        reasons.push(Error::new(
            ty.span(),
            "a follower cannot make up an `impl Trait`: name the type, or say what a follower returns: `skipped = EXPR`",
        ));
    }
    function::all(reasons)
}
