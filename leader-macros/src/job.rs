//! A function as a job: what it needs of the data, and how it is run.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, FnArg, Result, ReturnType, Type};

use crate::function::{self, Function, mentions};
use crate::job_args::JobArgs;
use crate::output::inner_type;

/// Why no scheduler could call such a function, free or not.
pub(crate) fn reject(function: &Function) -> Result<()> {
    let sig = &function.sig;
    let mut reasons = Vec::new();
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

/// What a run is lent: the data that has to be there, and the arguments of the call.
#[derive(Default)]
pub(crate) struct Lent {
    needs: Vec<TokenStream>,
    arguments: Vec<TokenStream>,
}

impl Lent {
    /// Of all arguments but `self`; and what is wrong with them.
    pub(crate) fn of(function: &Function, krate: &TokenStream) -> (Self, Result<()>) {
        let (mut lent, mut reasons) = (Self::default(), Vec::new());
        for argument in &function.sig.inputs {
            let FnArg::Typed(argument) = argument else { continue };
            reasons.extend(lent.take(&argument.ty, krate).err());
        }
        (lent, function::all(reasons))
    }

    /// Lends `self`, too, of the type `Self`. What forbids that is told at `receiver`.
    pub(crate) fn with_self(mut self, receiver: Span, krate: &TokenStream) -> Self {
        self.needs.insert(0, quote_spanned!(receiver=> #krate::__private::DataKey::of::<Self>()));
        self.arguments.insert(0, quote_spanned!(receiver=> cx.get::<Self>()));
        self
    }

    fn take(&mut self, ty: &Type, krate: &TokenStream) -> Result<()> {
        let Type::Reference(reference) = inner_type(ty) else {
            if mentions(ty.to_token_stream(), "impl") {
                return Err(Error::new(
                    ty.span(),
                    "an `impl Trait` does not say which data is meant: write `&T` or `&dyn Trait`",
                ));
            }
            self.arguments.push(quote_spanned!(ty.span()=> <#ty as #krate::__private::FromContext>::from_context(cx)));
            return Ok(());
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
        self.needs.push(quote_spanned!(data.span()=> #krate::__private::DataKey::of::<#data>()));
        self.arguments.push(quote_spanned!(data.span()=> cx.get::<#data>()));
        Ok(())
    }
}

/// A job, whose `runner` is the path of a function as [`signature`] tells it.
pub(crate) fn registration(
    function: &Function,
    args: &JobArgs,
    Lent { needs, .. }: &Lent,
    runner: &TokenStream,
) -> TokenStream {
    let krate = &args.krate;
    let (name, schedules, policy) = (args.name(&function.name()), args.schedules(), args.policy());
    let renamed_from = args.renamed_from();
    let site = function.site(krate);
    let run = if function.is_async_fn() { quote!(Async) } else { quote!(Blocking) };
    quote! {
        #krate::__private::JobRegistration {
            name: #name,
            renamed_from: #renamed_from,
            schedules: #schedules,
            site: #site,
            needs: &[#(#needs),*],
            policy: #policy,
            run: #krate::__private::Run::#run(#runner),
        }
    }
}

/// The name of the function that the scheduler calls: no job has it.
pub(crate) fn runner() -> Ident {
    Ident::new("__leader_run", Span::call_site())
}

/// The head of that function.
pub(crate) fn signature(function: &Function, krate: &TokenStream) -> TokenStream {
    let runner = runner();
    if function.is_async_fn() {
        quote! {
            fn #runner<'a>(cx: &'a #krate::__private::Context)
                -> #krate::__private::BoxFuture<'a, #krate::__private::Outcome>
        }
    } else {
        quote!(fn #runner(cx: &#krate::__private::Context) -> #krate::__private::Outcome)
    }
}

/// Its body, which calls `callee`.
pub(crate) fn call(function: &Function, callee: &TokenStream, lent: &Lent, krate: &TokenStream) -> TokenStream {
    let arguments = &lent.arguments;
    let output = match &function.sig.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => ty.to_token_stream(),
    };
    let into_outcome = quote_spanned!(output.span()=> <#output as #krate::__private::IntoOutcome>::into_outcome);
    if function.is_async_fn() {
        // The cast to a future that may change threads stands at the function's name, and so does what forbids it.
        quote_spanned! {function.sig.ident.span()=>
            ::std::boxed::Box::pin(async move { #into_outcome(#callee(#(#arguments),*).await) })
        }
    } else {
        quote!(#into_outcome(#callee(#(#arguments),*)))
    }
}
