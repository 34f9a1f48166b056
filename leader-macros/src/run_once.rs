//! `#[run_once]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::Result;
use syn::parse::{ParseStream, Parser};

use crate::args::Attribute;
use crate::function::{self, Function};
use crate::locked::{Args, Kind, Names};
use crate::nesting;

const NAME: &str = "run_once";
const KIND: Kind = Kind {
    held: "claim",
    // A part of the key is taken by what tells such work from a lock of the same name.
    longest_key: 507,
    key: "migrate:{VERSION}",
    plain_key: "migrate:3",
};

const ATTRIBUTE: Attribute = Attribute {
    name: NAME,
    options: &[
        ("key", "key = \"…\""),
        ("ttl", "ttl = \"30s\""),
        ("wait", "wait = \"5s\""),
        ("keep", "keep = \"30days\""),
        ("on_busy", "on_busy = \"skip\""),
        ("skipped", "skipped = EXPR"),
        ("lost", "lost = EXPR"),
        ("crate", "crate = path"),
    ],
};

pub(crate) fn expand(args: TokenStream, item: TokenStream) -> TokenStream {
    try_expand(args, item.clone()).unwrap_or_else(|error| function::keep(error, item))
}

fn try_expand(args: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut function = Function::read(NAME, item)?;
    let parse = |input: ParseStream<'_>| Args::parse(&ATTRIBUTE, &KIND, input);
    let args = function::both(parse.parse2(args), function.reject_unsupported(NAME))?;
    args.reject_for(NAME, &function)?;
    nesting::reject_inside(nesting::AROUND_ONCE, &function, NAME)?;

    let Names { call, holding, done, error, loss } = Names::new();
    let krate = &args.krate;
    let (key, times, site) = (args.key.reference(krate), args.times(), function.site(krate));
    let (not_had, lost) = (args.not_had(&function, &error), args.lost(&function, &loss));
    let skipped = args.skipped(&function);
    let has_succeeded = function.output().function(krate, "Completes", "has_succeeded");
    let is_async = function.is_async();
    function.wrap(NAME, |work| {
        let (take, run, end) = if is_async {
            (quote!(take().await), quote!(run_cancellable(#work).await), quote!(end(#done, #has_succeeded).await))
        } else {
            (quote!(take_blocking()), quote!(run_sync(#work)), quote!(end_blocking(#done, #has_succeeded)))
        };
        // In a statement of its own the key is over before anything is awaited: it may be made of what cannot change threads.
        quote! {
            let #call = #krate::__private::run_once(#key, &#site) #times;
            let #holding = match #call.#take {
                ::core::result::Result::Ok(::core::option::Option::Some(#holding)) => #holding,
                ::core::result::Result::Ok(::core::option::Option::None) => return #skipped,
                ::core::result::Result::Err(#error) => return #not_had,
            };
            let #done = #holding.#run;
            match #holding.#end {
                ::core::result::Result::Ok(#done) => #done,
                ::core::result::Result::Err(#loss) => #lost,
            }
        }
    })?;
    Ok(function.into_token_stream())
}
