//! `#[cron]` and `#[every]` on a function.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{Error, FnArg, Result};

use crate::function::{self, Function, mentions};
use crate::job::{self, Lent};
use crate::job_args::{self, JobArgs, Kind};

pub(crate) fn expand(kind: Kind, args: TokenStream, item: TokenStream) -> TokenStream {
    if job_args::is_taken(&args) {
        return item;
    }
    try_expand(kind, args, item.clone()).unwrap_or_else(|error| keep(error, item))
}

/// The error, and the function with its other schedules taken, which would say the same again.
fn keep(error: Error, item: TokenStream) -> TokenStream {
    let item = match syn::parse2::<Function>(item.clone()) {
        Ok(mut function) => {
            job_args::take(&mut function.attrs);
            function.into_token_stream()
        }
        Err(_) => item,
    };
    function::keep(error, item)
}

fn try_expand(kind: Kind, tokens: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut function = Function::read(kind.name(), item)?;
    let mut args = JobArgs::new(quote!(::leader_cron));
    let own = args.read(kind, tokens);
    let others = args.read_all(&job_args::take(&mut function.attrs));
    let (lent, wrong) = Lent::of(&function, &args.krate);
    let checked = [
        own.and_then(|()| args.check()),
        others,
        function.reject_unsupported(kind.name()),
        reject_methods(&function),
        job::reject(&function),
        wrong,
    ];
    function::all(checked.into_iter().filter_map(Result::err))?;

    let krate = &args.krate;
    let (runner, name) = (job::runner().into_token_stream(), function.sig.ident.to_token_stream());
    let registration = job::registration(&function, &args, &lent, &runner);
    let (signature, call) = (job::signature(&function, krate), job::call(&function, &name, &lent, krate));
    // Where the function is left out by a `#[cfg]` that comes after this attribute, so is its registration.
    let cfgs = function::cfgs(&function.attrs);
    Ok(quote! {
        #function
        #(#cfgs)*
        #krate::__private::put_cron_jobs_on_the_impl_block_of_a_method! {
            #signature { #call }
            #krate::__private::inventory::submit! { #registration }
        }
    })
}

/// What is written in an `impl` block, as far as a function shows it. The others end at the name of the macro above.
fn reject_methods(function: &Function) -> Result<()> {
    let sig = &function.sig;
    let (place, what) = match sig.inputs.first() {
        Some(FnArg::Receiver(receiver)) => (receiver.span(), "nothing here says what `self` is"),
        _ if mentions(sig.to_token_stream(), "Self") => (sig.ident.span(), "nothing here says what `Self` is"),
        _ => return Ok(()),
    };
    Err(Error::new(
        place,
        format!(
            "{what}: put `#[cron_jobs]` on the `impl` block, and the job is run with what the scheduler was given by \
             `.data(..)`; or make it a free function"
        ),
    ))
}
