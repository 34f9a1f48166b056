//! `#[cron_jobs]`: the methods of an `impl` block as jobs.
//!
//! A registration stands beside the block, where `Self` has no meaning. So each is written into the `impl` of a trait of its own
//! for the same type: what the user wrote means there what it meant in the block.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, TokenStreamExt, quote};
use syn::parse::discouraged::Speculative;
use syn::parse::{Parse, ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, ImplItem, ItemImpl, Path, Receiver, ReceiverKind, Result, Type};

use crate::args;
use crate::function::{self, Function};
use crate::job::{self, Lent};
use crate::job_args::{self, JobArgs, Kind};
use crate::nesting;
use crate::output::inner_type;

const NAME: &str = "cron_jobs";

const ATTRIBUTE: args::Attribute = args::Attribute { name: NAME, options: &[("crate", "crate = path")] };

pub(crate) fn expand(args: TokenStream, item: TokenStream) -> TokenStream {
    let mut block = match Block::read(item.clone()) {
        Ok(block) => block,
        Err(error) => {
            let error = error.into_compile_error();
            return quote!(#error #item);
        }
    };
    let jobs = block.take_jobs(args).unwrap_or_else(Error::into_compile_error);
    quote!(#block #jobs)
}

/// An `impl` block whose functions stay as they are written.
struct Block {
    /// All that stands before the braces, and what it says.
    head: TokenStream,
    read: ItemImpl,
    inner_attrs: Vec<Attribute>,
    items: Vec<Item>,
    braces: Group,
}

enum Item {
    Function(Box<Function>),
    Other(Box<ImplItem>),
}

impl Parse for Item {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let ahead = input.fork();
        if let Ok(function) = ahead.parse() {
            input.advance_to(&ahead);
            return Ok(Self::Function(Box::new(function)));
        }
        input.parse().map(|other| Self::Other(Box::new(other)))
    }
}

impl ToTokens for Block {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let attrs = &self.inner_attrs;
        let mut body = quote!(#(#attrs)*);
        for item in &self.items {
            match item {
                Item::Function(function) => function.to_tokens(&mut body),
                Item::Other(other) => other.to_tokens(&mut body),
            }
        }
        let mut braces = Group::new(Delimiter::Brace, body);
        braces.set_span(self.braces.span());
        tokens.extend(self.head.clone());
        tokens.append(braces);
    }
}

impl Block {
    fn read(item: TokenStream) -> Result<Self> {
        let mut tokens: Vec<TokenTree> = item.clone().into_iter().collect();
        let body = tokens.pop();
        let head: TokenStream = tokens.into_iter().collect();
        let no_block = || {
            let span = head.clone().into_iter().next().map_or_else(|| item.span(), |first| first.span());
            Error::new(span, format!("`#[{NAME}]` can only be put on an `impl` block with its methods"))
        };
        let Some(TokenTree::Group(braces)) = body else { return Err(no_block()) };
        let read: ItemImpl = syn::parse2(quote!(#head {})).map_err(|_| no_block())?;
        let items = |input: ParseStream<'_>| {
            let attrs = input.call(Attribute::parse_inner)?;
            let mut items = Vec::new();
            while !input.is_empty() {
                items.push(input.parse()?);
            }
            Ok((attrs, items))
        };
        let (inner_attrs, items) = items.parse2(braces.stream())?;
        Ok(Self { head, read, inner_attrs, items, braces })
    }

    /// Takes the schedules off the functions, and makes jobs of them.
    fn take_jobs(&mut self, args: TokenStream) -> Result<TokenStream> {
        let mut krate = quote!(::leader_cron);
        let options = |input: ParseStream<'_>| {
            ATTRIBUTE.parse(input, |_, input| {
                krate = args::crate_path(input)?;
                Ok(())
            })
        };
        let mut reasons: Vec<Error> = options.parse2(args).err().into_iter().collect();
        let (mut jobs, mut any) = (TokenStream::new(), false);
        for item in &mut self.items {
            let Item::Function(function) = item else { continue };
            let schedules = job_args::take(&mut function.attrs);
            reasons.extend(reject_undecided(function).err());
            if schedules.is_empty() {
                continue;
            }
            any = true;
            match job(&self.read, function, &schedules, krate.clone()) {
                Ok(job) => jobs.extend(job),
                Err(error) => reasons.push(error),
            }
        }
        reasons.extend(reject_types(&self.read).err());
        if !any && reasons.is_empty() {
            reasons.push(Error::new(
                self.read.self_ty.span(),
                "no method here has a schedule: put `#[cron(\"…\")]` or `#[every(\"…\")]` on one, by these names, or take \
                 `#[cron_jobs]` away",
            ));
        }
        function::all(reasons).map(|()| jobs)
    }
}

fn job(
    block: &ItemImpl,
    function: &Function,
    schedules: &[(Kind, Attribute)],
    krate: TokenStream,
) -> Result<TokenStream> {
    let of_trait = block.trait_.as_ref().map(|(path, _)| path);
    let mut function = function.clone();
    if let Some(path) = of_trait {
        function.sig = syn::parse2(of_the_trait(function.sig.to_token_stream(), path))?;
    }
    let function = &function;
    let mut args = JobArgs::new(krate);
    let read = args.read_all(schedules).and_then(|()| args.check());
    let (lent, wrong) = Lent::of(function, &args.krate);
    let first = schedules.first().map_or(NAME, |(kind, _)| kind.name());
    let receiver = receiver(function);
    let checked = [read, function.reject_unsupported(first), reject_generics(function)];
    function::all(checked.into_iter().chain([wrong]).filter_map(Result::err).chain(receiver.as_ref().err().cloned()))?;
    let lent = match receiver? {
        Some(receiver) => lent.with_self(receiver.span(), &args.krate),
        None => lent,
    };

    let krate = &args.krate;
    let (self_ty, name, runner) = (&block.self_ty, &function.sig.ident, job::runner());
    let callee = match of_trait {
        Some(path) => quote!(<Self as #path>::#name),
        None => quote!(Self::#name),
    };
    let registration = job::registration(function, &args, &lent, &quote!(<Self as __LeaderJob>::#runner));
    let (signature, call) = (job::signature(function, krate), job::call(function, &callee, &lent, krate));
    let of_block = function::cfgs(&block.attrs);
    let cfgs = of_block.chain(function::cfgs(&function.attrs));
    Ok(quote! {
        #(#cfgs)*
        const _: () = {
            trait __LeaderJob {
                const JOB: #krate::__private::JobRegistration;
                #signature;
            }
            impl __LeaderJob for #self_ty {
                const JOB: #krate::__private::JobRegistration = #registration;
                #signature { #call }
            }
            #krate::__private::inventory::submit! { <#self_ty as __LeaderJob>::JOB }
        };
    })
}

/// `&self`, if there is a `self`; or why that is not what can be lent.
fn receiver(function: &Function) -> Result<Option<&Receiver>> {
    let Some(FnArg::Receiver(receiver)) = function.sig.inputs.first() else { return Ok(None) };
    let refuse = |reason| Err(Error::new(receiver.span(), reason));
    let exclusive = "runs share `self` with others: write `&self`, with a `Mutex` in it for what has to change";
    match &receiver.kind {
        ReceiverKind::Reference(_, _, Some(_)) => refuse(exclusive),
        ReceiverKind::Reference(_, Some(lifetime), _) if lifetime.ident == "static" => {
            refuse("`self` is lent for the length of a run: write `&self`")
        }
        ReceiverKind::Reference(..) => Ok(Some(receiver)),
        ReceiverKind::Typed(_, ty) => match inner_type(ty) {
            Type::Reference(reference) if is_self(&reference.elem) && reference.mutability.is_some() => {
                refuse(exclusive)
            }
            Type::Reference(reference) if is_self(&reference.elem) && reference.lifetime.is_none() => {
                Ok(Some(receiver))
            }
            _ => refuse("a run is lent `self`, whatever holds it: write `&self`"),
        },
        _ => refuse("a run is lent `self`, as it is needed again at the next tick: write `&self`"),
    }
}

fn is_self(ty: &Type) -> bool {
    matches!(inner_type(ty), Type::Path(path) if path.path.is_ident("Self"))
}

fn reject_generics(function: &Function) -> Result<()> {
    let generics = &function.sig.generics;
    if generics.lifetimes().any(|lifetime| lifetime.lifetime.ident == "async_trait") {
        let message = "`#[async_trait]` has rewritten this method already: write `#[cron_jobs]` above `#[async_trait]`";
        return Err(Error::new(function.sig.ident.span(), message));
    }
    job::reject(function)
}

/// Of which type `self` would be is not known, or it is one that cannot be data.
fn reject_types(block: &ItemImpl) -> Result<()> {
    let mut reasons = Vec::new();
    if !block.generics.params.is_empty() {
        reasons.push(Error::new(
            block.generics.params.span(),
            "a job cannot be generic: nothing says for which types to run this block's methods; write the block for one type",
        ));
    }
    if let Some(lifetime) = borrowed(block.self_ty.to_token_stream()) {
        reasons.push(Error::new(
            lifetime,
            "a job's `self` is data of the scheduler, which borrows from nobody: write the block for a type without lifetimes",
        ));
    }
    function::all(reasons)
}

/// Where a lifetime other than `'static` is written.
fn borrowed(tokens: TokenStream) -> Option<proc_macro2::Span> {
    let mut after_quote = false;
    tokens.into_iter().find_map(|token| {
        let is_lifetime =
            std::mem::replace(&mut after_quote, matches!(&token, TokenTree::Punct(p) if p.as_char() == '\''));
        match token {
            TokenTree::Ident(ident) if is_lifetime && ident != "static" => Some(ident.span()),
            TokenTree::Group(group) => borrowed(group.stream()),
            _ => None,
        }
    })
}

/// Whether it is a job shows only once the compiler has looked at the configuration, and then it is too late to register it.
fn reject_undecided(function: &mut Function) -> Result<()> {
    let undecided = function.attrs.extract_if(.., |attr| nesting::is_undecided(job_args::NAMES, attr));
    let reason = |attr: Attribute| {
        let message = "a schedule under `cfg_attr` is not seen by `#[cron_jobs]`: put `#[cfg(…)]` on the method, and write \
                       another one without a schedule for the rest";
        Error::new(attr.path().span(), message)
    };
    function::all(undecided.map(reason))
}

/// `Self::Error` as `<Self as Trait>::Error`: where it ends up, `Self` has another trait.
fn of_the_trait(tokens: TokenStream, path: &Path) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut rewritten = TokenStream::new();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(ident)
                if ident == "Self"
                    && matches!(tokens.peek(), Some(TokenTree::Punct(next)) if next.as_char() == ':') =>
            {
                rewritten.extend(quote!(<#ident as #path>));
            }
            TokenTree::Group(group) => {
                let mut within = Group::new(group.delimiter(), of_the_trait(group.stream(), path));
                within.set_span(group.span());
                rewritten.append(within);
            }
            other => rewritten.append(other),
        }
    }
    rewritten
}
