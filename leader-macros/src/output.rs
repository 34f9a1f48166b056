//! What the work of a function results in, as far as that is written.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, GenericArgument, PathArguments, ReturnType, Type, TypeParamBound};

/// The result of some work.
#[derive(Clone, Copy)]
pub(crate) enum Output<'a> {
    /// `()`, because none is written.
    Unit,
    /// A type that can be written again elsewhere.
    Named(&'a Type),
    /// A type with an `impl …` in it, or one that is not written at all: only inference knows it.
    Unnamed(Option<&'a Type>),
}

impl Output<'_> {
    /// The path of a function that a trait of `leader-core` has for this type. That the type has no such trait is reported at
    /// the type.
    pub(crate) fn function(self, krate: &TokenStream, name: &str, function: &str) -> TokenStream {
        let place = match self {
            Self::Named(ty) | Self::Unnamed(Some(ty)) => ty.span(),
            Self::Unit | Self::Unnamed(None) => Span::call_site(),
        };
        let (name, function) = (Ident::new(name, place), Ident::new(function, Span::call_site()));
        match self {
            Self::Unit => quote!(<() as #krate::__private::#name>::#function),
            Self::Named(ty) => quote!(<#ty as #krate::__private::#name>::#function),
            Self::Unnamed(_) => quote!(#krate::__private::#name::#function),
        }
    }

    /// What is returned by a call that is skipped, unless the attribute says it.
    pub(crate) fn skipped(self, krate: &TokenStream, said: Option<&Expr>) -> TokenStream {
        match (said, self) {
            (Some(said), _) => value(said),
            (None, Self::Unit) => quote!(()),
            (None, output) => {
                let skipped = output.function(krate, "Skipped", "skipped");
                quote!(#skipped())
            }
        }
    }

    /// Tells an `async` block its output before its body does: `?` and `return` in it need to know. Written at the type,
    /// or else at the function's name, because messages about the body's value show that place too.
    pub(crate) fn declaration(self, name: Span) -> TokenStream {
        let (output, place) = match self {
            Self::Unit => (quote!(()), name),
            Self::Named(ty) => (quote!(#ty), ty.span()),
            Self::Unnamed(_) => return TokenStream::new(),
        };
        quote_spanned! {Span::mixed_site().located_at(place)=>
            if let ::core::option::Option::Some(output) = ::core::option::Option::None::<#output> {
                return output;
            }
        }
    }
}

/// A value that the attribute says. Of a `()` of the user's own, clippy would say that it is one too many where it ends up.
pub(crate) fn value(said: &Expr) -> TokenStream {
    match said {
        Expr::Tuple(unit) if unit.elems.is_empty() => quote!(()),
        said => said.to_token_stream(),
    }
}

/// The output of a function that returns a future: `Some` if it does; the type in it if it is written.
pub(crate) fn future_output(output: &ReturnType) -> Option<Option<&Type>> {
    let ReturnType::Type(_, ty) = output else { return None };
    match inner_type(ty) {
        Type::ImplTrait(future) => output_of_bounds(&future.bounds),
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let argument = first_type_argument(&last.arguments);
            match last.ident.to_string().as_str() {
                "BoxFuture" | "LocalBoxFuture" => Some(argument),
                "Pin" => {
                    let Type::Path(pointer) = inner_type(argument?) else { return None };
                    match inner_type(first_type_argument(&pointer.path.segments.last()?.arguments)?) {
                        Type::TraitObject(future) => output_of_bounds(&future.bounds),
                        _ => None,
                    }
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn output_of_bounds<'a>(bounds: impl IntoIterator<Item = &'a TypeParamBound>) -> Option<Option<&'a Type>> {
    let future = bounds.into_iter().find_map(|bound| match bound {
        TypeParamBound::Trait(bound) => bound.path.segments.last().filter(|last| last.ident == "Future"),
        _ => None,
    })?;
    let PathArguments::AngleBracketed(arguments) = &future.arguments else { return Some(None) };
    Some(arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::AssocType(output) if output.ident == "Output" => Some(&output.ty),
        _ => None,
    }))
}

fn first_type_argument(arguments: &PathArguments) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// The type without parentheses, and without the invisible group that a `$type:ty` of a `macro_rules!` comes in.
pub(crate) fn inner_type(mut ty: &Type) -> &Type {
    loop {
        ty = match ty {
            Type::Group(group) => &group.elem,
            Type::Paren(paren) => &paren.elem,
            ty => return ty,
        };
    }
}
