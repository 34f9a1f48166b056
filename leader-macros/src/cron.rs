//! `#[cron]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, FnArg, LitStr, Result, ReturnType, Token, Type};

use crate::args::{self, Attribute, Text};
use crate::function::{self, Function, mentions};
use crate::output::inner_type;
use crate::policy::Policy;
use crate::schedule;

const NAME: &str = "cron";

const ATTRIBUTE: Attribute = Attribute {
    name: NAME,
    options: &[
        ("tz", "tz = \"Europe/Berlin\""),
        ("name", "name = \"…\""),
        ("missed", "missed = \"once\""),
        ("within", "within = \"10m\""),
        ("overlap", "overlap = \"forbid\""),
        ("delivery", "delivery = \"at-most-once\""),
        ("timeout", "timeout = \"5m\""),
        ("jitter", "jitter = \"30s\""),
        ("crate", "crate = path"),
    ],
};

struct Args {
    schedule: Text,
    tz: Option<LitStr>,
    name: Option<LitStr>,
    policy: Policy,
    krate: TokenStream,
}

impl Parse for Args {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        // Nothing, or an option in the expression's place.
        if input.is_empty() || input.peek2(Token![=]) {
            return Err(Error::new(input.span(), "a cron expression comes first: `#[cron(\"0 */5 * * * *\")]`"));
        }
        let schedule = input.parse()?;
        if let Text::Literal(expression) = &schedule {
            schedule::check(&expression.value()).map_err(|reason| Error::new(expression.span(), reason))?;
        }
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        let (mut tz, mut name) = (None, None);
        let mut policy = Policy::default();
        let mut krate = quote!(::leader_cron);
        ATTRIBUTE.parse(input, |option, input| {
            match option {
                "tz" => tz = Some(time_zone(input)?),
                "name" => name = Some(args::key_name_literal(input)?),
                "crate" => krate = args::crate_path(input)?,
                other => policy.take(other, input)?,
            }
            Ok(())
        })?;
        policy.check()?;
        Ok(Self { schedule, tz, name, policy, krate })
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

pub(crate) fn expand(args: TokenStream, item: TokenStream) -> TokenStream {
    try_expand(args, item.clone()).unwrap_or_else(|error| function::keep(error, item))
}

fn try_expand(args: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let function = Function::read(NAME, item)?;
    let mut reasons = Vec::new();
    reasons.extend(function.reject_unsupported(NAME).err());
    reasons.extend(reject_what_no_job_can_be(&function).err());
    let (mut needs, mut arguments) = (Vec::new(), Vec::new());
    let args = syn::parse2::<Args>(args);
    let krate = args.as_ref().map_or_else(|_| quote!(::leader_cron), |args| args.krate.clone());
    for argument in &function.sig.inputs {
        let FnArg::Typed(argument) = argument else { continue };
        match take(&argument.ty, &krate) {
            Ok((need, value)) => {
                needs.extend(need);
                arguments.push(value);
            }
            Err(error) => reasons.push(error),
        }
    }
    let Args { schedule, tz, name, policy, krate } = match args {
        Ok(args) => args,
        Err(error) => return Err(function::all([error].into_iter().chain(reasons)).expect_err("there is an error")),
    };
    function::all(reasons)?;

    let site = function.site(&krate);
    let own_name = function.name();
    let name = name.map_or_else(|| quote!(#own_name), |name| quote!(#name));
    let tz = match tz {
        Some(tz) => quote!(::core::option::Option::Some(#tz)),
        None => quote!(::core::option::Option::None),
    };
    let policy = policy.tokens(&krate);
    let run = run(&function, &arguments, &krate);
    // Where the function is left out by a `#[cfg]` that comes after this attribute, so is its registration.
    let cfgs = function.attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
    Ok(quote! {
        #function
        #(#cfgs)*
        const _: () = {
            const NEEDS: &[#krate::__private::DataKey] = &[#(#needs),*];
            #krate::__private::inventory::submit! {
                #krate::__private::JobRegistration {
                    name: #name,
                    schedule: #schedule,
                    tz: #tz,
                    site: #site,
                    needs: NEEDS,
                    policy: #policy,
                    run: #run,
                }
            }
        };
    })
}

fn reject_what_no_job_can_be(function: &Function) -> Result<()> {
    let sig = &function.sig;
    let mut reasons = Vec::new();
    if let Some(FnArg::Receiver(receiver)) = sig.inputs.first() {
        reasons.push(Error::new(
            receiver.span(),
            "nothing here says what `self` is: make the job a free function that takes what it needs as `&T`",
        ));
    } else if mentions(sig.to_token_stream(), "Self") {
        reasons.push(Error::new(
            sig.ident.span(),
            "a job cannot be a function of an `impl` block: make it a free function that takes what it needs as `&T`",
        ));
    }
    if !sig.generics.params.is_empty() {
        reasons.push(Error::new(
            sig.generics.params.span(),
            "a job cannot be generic: nothing says what to run it with; an argument is a plain `&T`",
        ));
    }
    if !function.is_async_fn() && function.is_async() {
        reasons.push(Error::new(sig.output.span(), "a job that returns a future is written as an `async fn`"));
    }
    function::all(reasons)
}

/// What an argument needs of the data, and the expression that makes it.
fn take(ty: &Type, krate: &TokenStream) -> Result<(Option<TokenStream>, TokenStream)> {
    let Type::Reference(reference) = inner_type(ty) else {
        if mentions(ty.to_token_stream(), "impl") {
            return Err(Error::new(
                ty.span(),
                "an `impl Trait` does not say which data is meant: write `&T` or `&dyn Trait`",
            ));
        }
        return Ok((None, quote_spanned!(ty.span()=> <#ty as #krate::__private::FromContext>::from_context(cx))));
    };
    if let Some(mutability) = reference.mutability {
        return Err(Error::new(
            mutability.span(),
            "data is shared with other runs: write `&T`, with a `Mutex` in it if it has to change",
        ));
    }
    if let Some(lifetime) = reference.lifetime.as_ref().filter(|lifetime| lifetime.ident == "static") {
        return Err(Error::new(lifetime.span(), "data is lent for the length of a run: write `&T`"));
    }
    let data = &reference.elem;
    if mentions(data.to_token_stream(), "impl") {
        return Err(Error::new(
            data.span(),
            "an `impl Trait` does not say which data is meant: write `&T` or `&dyn Trait`",
        ));
    }
    let need = quote_spanned!(data.span()=> #krate::__private::DataKey::of::<#data>());
    let value = quote_spanned!(data.span()=> cx.get::<#data>());
    Ok((Some(need), value))
}

/// The function that the scheduler calls.
fn run(function: &Function, arguments: &[TokenStream], krate: &TokenStream) -> TokenStream {
    let name = &function.sig.ident;
    let output = match &function.sig.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => ty.to_token_stream(),
    };
    let into_outcome = quote_spanned!(output.span()=> <#output as #krate::__private::IntoOutcome>::into_outcome);
    if function.is_async_fn() {
        // The cast to a future that may change threads stands at the function's name, and so does what forbids it.
        let boxed = quote_spanned! {name.span()=>
            ::std::boxed::Box::pin(async move { #into_outcome(#name(#(#arguments),*).await) })
        };
        quote! {{
            fn run<'a>(cx: &'a #krate::__private::Context) -> #krate::__private::BoxFuture<'a, #krate::__private::Outcome> {
                #boxed
            }
            #krate::__private::Run::Async(run)
        }}
    } else {
        quote! {{
            fn run(cx: &#krate::__private::Context) -> #krate::__private::Outcome {
                #into_outcome(#name(#(#arguments),*))
            }
            #krate::__private::Run::Blocking(run)
        }}
    }
}
