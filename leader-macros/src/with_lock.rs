//! `#[with_lock]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::Result;
use syn::parse::{ParseStream, Parser};

use crate::args::Attribute;
use crate::function::{self, Function};
use crate::locked::{Args, Kind, Names, OnLoss};
use crate::nesting;

const NAME: &str = "with_lock";
const KIND: Kind = Kind {
    held: "lock",
    // As the keys of all locks.
    longest_key: 512,
    key: "billing:{account_id}",
    plain_key: "billing:charge-run",
};

const ATTRIBUTE: Attribute = Attribute {
    name: NAME,
    options: &[
        ("key", "key = \"…\""),
        ("ttl", "ttl = \"30s\""),
        ("wait", "wait = \"5s\""),
        ("on_busy", "on_busy = \"skip\""),
        ("skipped", "skipped = EXPR"),
        ("on_loss", "on_loss = \"finish\""),
        ("lost", "lost = EXPR"),
        ("crate", "crate = path"),
    ],
};

pub(crate) fn expand(args: TokenStream, item: TokenStream) -> TokenStream {
    try_expand(args, item.clone()).unwrap_or_else(|error| function::keep(error, item))
}

fn try_expand(tokens: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut function = Function::read(NAME, item)?;
    let parse = |input: ParseStream<'_>| Args::parse(&ATTRIBUTE, &KIND, input);
    let args = function::both(parse.parse2(tokens.clone()), function.reject_unsupported(NAME))?;
    function::all(
        [args.reject_skipped_without_skip(), args.reject_for(NAME, &function)].into_iter().filter_map(Result::err),
    )?;
    nesting::reject_inside(nesting::AROUND_LOCKS, &function, NAME)?;
    if nesting::put_behind(nesting::INSIDE_LOCKS, &mut function, (&args.krate, NAME), &tokens)? {
        return Ok(function.into_token_stream());
    }

    let Names { call, holding, done, error, loss } = Names::new();
    let krate = &args.krate;
    let (key, times, site) = (args.key.reference(krate), args.times(), function.site(krate));
    let (not_had, lost) = (args.not_had(&function, &error), args.lost(&function, &loss));
    let is_async = function.is_async();
    let finish = args.on_loss.is_some_and(|(on_loss, _)| on_loss == OnLoss::Finish);
    function.wrap(NAME, |work| {
        let (take, run, end) = match (is_async, finish) {
            (false, _) => (quote!(take_blocking()), quote!(run_sync(#work)), quote!(end_blocking(#done))),
            (true, true) => (quote!(take().await), quote!(run(#work).await), quote!(end(#done).await)),
            (true, false) => (quote!(take().await), quote!(run_cancellable(#work).await), quote!(end(#done).await)),
        };
        // In a statement of its own the key is over before anything is awaited: it may be made of what cannot change threads.
        quote! {
            let #call = #krate::__private::with_lock(#key, &#site) #times;
            let #holding = match #call.#take {
                ::core::result::Result::Ok(#holding) => #holding,
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
