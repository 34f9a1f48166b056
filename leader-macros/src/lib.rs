//! Attribute macros of `leader-core` and `leader-cron`.

mod args;
mod cron;
mod function;
mod leader_only;
mod schedule;

use proc_macro::TokenStream;

/// x
#[proc_macro_attribute]
pub fn leader_only(args: TokenStream, item: TokenStream) -> TokenStream {
    leader_only::expand(args.into(), item.into()).into()
}

/// x
#[proc_macro_attribute]
pub fn cron(args: TokenStream, item: TokenStream) -> TokenStream {
    cron::expand(args.into(), item.into()).into()
}
