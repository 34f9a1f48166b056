//! A function whose body stays tokens, so that an expansion keeps it as it was written.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, TokenStreamExt, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{AttrStyle, Attribute, Error, Meta, Result, ReturnType, Safety, Signature, Token, Type, Visibility};

use crate::output::{Output, future_output, inner_type};

/// A function with a body.
#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    vis: Visibility,
    pub(crate) sig: Signature,
    body: Group,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let sig: Signature = input.parse()?;
        let content;
        let brace = syn::braced!(content in input);
        attrs.extend(content.call(Attribute::parse_inner)?);
        let mut body = Group::new(Delimiter::Brace, content.parse()?);
        body.set_span(brace.span.join());
        Ok(Self { attrs, vis, sig, body })
    }
}

impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        for attr in &self.attrs {
            // An inner attribute would end up behind what is put in front of the body, where none may stand.
            let attr = Attribute { style: AttrStyle::Outer, ..attr.clone() };
            attr.to_tokens(tokens);
        }
        self.vis.to_tokens(tokens);
        self.sig.to_tokens(tokens);
        tokens.append(self.body.clone());
    }
}

impl Function {
    /// Reads the item that the attribute `name` stands on, or says why it is none for it.
    pub(crate) fn read(name: &str, item: TokenStream) -> Result<Self> {
        match syn::parse2(item.clone()) {
            Ok(function) => Ok(function),
            Err(error) => Err(match what_stands_there(item) {
                Item::Function => error,
                Item::Declaration(span) => Error::new(
                    span,
                    format!(
                        "`#[{name}]` needs a body: put it on the method in the `impl`, not on its declaration in the trait"
                    ),
                ),
                Item::Other(span) => Error::new(span, format!("`#[{name}]` can only be put on a function")),
            }),
        }
    }

    /// All reasons why the attribute `name` cannot stand on this function.
    pub(crate) fn reject_unsupported(&self, name: &str) -> Result<()> {
        let mut reasons = Vec::new();
        if let Some(constness) = &self.sig.constness {
            reasons.push(Error::new(
                constness.span,
                format!("`#[{name}]` works at run time, which a `const fn` does not have: take `const` away"),
            ));
        }
        if let Safety::Unsafe(unsafety) = &self.sig.safety {
            reasons.push(Error::new(
                unsafety.span,
                format!(
                    "`#[{name}]` cannot be put on an `unsafe fn`: what its caller promises must not depend on whether it \
                     runs; put it on the safe function that calls it"
                ),
            ));
        }
        if let Some(abi) = &self.sig.abi {
            reasons.push(Error::new(
                abi.span(),
                format!(
                    "`#[{name}]` cannot be put on an `extern` function: put it on a Rust function that this one calls"
                ),
            ));
        }
        if let ReturnType::Type(_, ty) = &self.sig.output
            && let Type::Never(never) = inner_type(ty)
        {
            reasons.push(Error::new(
                never.span(),
                format!("`#[{name}]` cannot be put on a function that never returns: where it does not run, it has to"),
            ));
        }
        all(reasons)
    }

    /// The tokens of this function's `Site`. They stand at its name, so that all attributes on it find the same place:
    /// at a call-site span, `line!()` is the line of the attribute.
    pub(crate) fn site(&self, krate: &TokenStream) -> TokenStream {
        let name = self.name();
        let at = self.sig.ident.span();
        let file = quote_spanned!(at=> ::core::file!());
        let line = quote_spanned!(at=> ::core::line!());
        let column = quote_spanned!(at=> ::core::column!());
        quote! {
            #krate::__private::Site {
                module: ::core::module_path!(),
                function: #name,
                file: #file,
                line: #line,
                column: #column,
            }
        }
    }

    /// The function's name, without `r#`.
    pub(crate) fn name(&self) -> String {
        self.sig.ident.unraw().to_string()
    }

    /// What it does, as it stands by now.
    pub(crate) fn body(&self) -> TokenStream {
        self.body.stream()
    }

    /// Whether the work itself is async, be it written as an `async fn` or as a function that returns a future.
    pub(crate) fn is_async(&self) -> bool {
        self.sig.asyncness.is_some() || future_output(&self.sig.output).is_some()
    }

    /// Whether it is written as an `async fn`.
    pub(crate) fn is_async_fn(&self) -> bool {
        self.sig.asyncness.is_some()
    }

    /// What the work results in.
    pub(crate) fn output(&self) -> Output<'_> {
        let written = match future_output(&self.sig.output) {
            Some(output) if self.sig.asyncness.is_none() => output,
            _ => match &self.sig.output {
                ReturnType::Default => return Output::Unit,
                ReturnType::Type(_, ty) => Some(&**ty),
            },
        };
        match written {
            Some(ty) if !mentions(ty.to_token_stream(), "impl") => Output::Named(ty),
            written => Output::Unnamed(written),
        }
    }

    /// Replaces the code that does the work by what `wrap` makes of it: of an `async` block, or of a closure. That code
    /// is the body, or, in a function that returns a future, the `async` block at the body's end: what is written
    /// there must not be asked for when the future is made, but when it is awaited.
    pub(crate) fn wrap(&mut self, name: &str, wrap: impl FnOnce(TokenStream) -> TokenStream) -> Result<()> {
        let declared = self.output().declaration(self.sig.ident.span());
        let body = if self.sig.asyncness.is_some() {
            let work = braced(quote!(#declared), self.body.stream(), self.body.span());
            wrap(quote!(async move #work))
        } else if self.is_async() {
            let wrap = |head: TokenStream, block: &Group| {
                let work = braced(declared, block.stream(), block.span());
                let wrapped = braced(TokenStream::new(), wrap(quote!(#head #work)), block.span());
                quote!(#head #wrapped)
            };
            replace_last_async_block(self.body.stream(), wrap).map_err(|why| {
                Error::new(self.sig.output.span(), format!("`#[{name}]` cannot see where this future begins: {why}"))
            })?
        } else {
            let work = &self.body;
            match self.output() {
                Output::Unit => {
                    let unit = quote_spanned!(Span::mixed_site().located_at(self.sig.ident.span())=> ());
                    wrap(quote!(move || -> #unit #work))
                }
                Output::Named(ty) => wrap(quote!(move || -> #ty #work)),
                Output::Unnamed(_) => wrap(quote!(move || #work)),
            }
        };
        self.body = braced(TokenStream::new(), body, self.body.span());
        Ok(())
    }

    /// The function as it was written, with the error in its body: it stays defined, so that no second error says that
    /// it is missing, and the error stands where also a trait's `impl` allows it.
    fn with_error(mut self, error: &TokenStream) -> TokenStream {
        self.body = braced(error.clone(), self.body.stream(), self.body.span());
        self.into_token_stream()
    }
}

/// What an attribute expands to if it cannot be expanded: the error, and the item as it was written.
pub(crate) fn keep(error: Error, item: TokenStream) -> TokenStream {
    let error = error.into_compile_error();
    match syn::parse2::<Function>(item.clone()) {
        Ok(function) => function.with_error(&error),
        Err(_) => quote!(#error #item),
    }
}

/// Those that say whether an item is there at all: what is written beside it for it has to have them, too.
pub(crate) fn cfgs(attrs: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    let decides = |attr: &&Attribute| match &attr.meta {
        Meta::List(list) if list.path.is_ident("cfg_attr") => mentions(list.tokens.clone(), "cfg"),
        meta => meta.path().is_ident("cfg"),
    };
    attrs.iter().filter(decides)
}

/// All errors as one, if there are any.
pub(crate) fn all(errors: impl IntoIterator<Item = Error>) -> Result<()> {
    let combined = errors.into_iter().reduce(|mut all, error| {
        all.combine(error);
        all
    });
    combined.map_or(Ok(()), Err)
}

/// What was read, or all errors of both.
pub(crate) fn both<T>(read: Result<T>, checked: Result<()>) -> Result<T> {
    match (read, checked) {
        (Ok(read), Ok(())) => Ok(read),
        (Ok(_), Err(error)) | (Err(error), Ok(())) => Err(error),
        (Err(mut error), Err(also)) => {
            error.combine(also);
            Err(error)
        }
    }
}

enum Item {
    Function,
    Declaration(Span),
    Other(Span),
}

fn what_stands_there(item: TokenStream) -> Item {
    let head = |input: ParseStream<'_>| {
        input.call(Attribute::parse_outer)?;
        input.parse::<Visibility>()?;
        let begin = input.span();
        let ahead = input.fork();
        let mut words = 0;
        // `const async unsafe extern "C" fn` is the longest that can stand before a name.
        while words < 6 && !ahead.peek(Token![fn]) && !ahead.is_empty() {
            ahead.parse::<TokenTree>()?;
            words += 1;
        }
        let found = if !ahead.peek(Token![fn]) {
            Item::Other(begin)
        } else if let Ok(sig) = input.fork().parse::<Signature>()
            && input.call(|rest| rest.parse::<Signature>().map(|_| rest.peek(Token![;]))).unwrap_or(false)
        {
            Item::Declaration(sig.ident.span())
        } else {
            Item::Function
        };
        input.parse::<TokenStream>()?;
        Ok(found)
    };
    syn::parse::Parser::parse2(head, item).unwrap_or(Item::Function)
}

/// A block with the span of the user's braces: errors about the block's value then point there.
fn braced(head: TokenStream, rest: TokenStream, span: Span) -> Group {
    let mut block = Group::new(Delimiter::Brace, quote!(#head #rest));
    block.set_span(span);
    block
}

/// Whether a word is anywhere in these tokens.
pub(crate) fn mentions(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == word,
        TokenTree::Group(group) => mentions(group.stream(), word),
        _ => false,
    })
}

/// Replaces the `async { … }` or `async move { … }` that a body ends in, directly or as the argument of `Box::pin`.
fn replace_last_async_block(
    body: TokenStream,
    replace: impl FnOnce(TokenStream, &Group) -> TokenStream,
) -> std::result::Result<TokenStream, &'static str> {
    const WRITE_ASYNC_FN: &str = "write it as an `async fn`, or let the body end in `async move { … }` or \
                                  `Box::pin(async move { … })`";
    let mut tokens: Vec<TokenTree> = body.into_iter().collect();
    let Some(TokenTree::Group(last)) = tokens.pop() else { return Err(WRITE_ASYNC_FN) };
    let is = |token: Option<&TokenTree>, word: &str| matches!(token, Some(TokenTree::Ident(ident)) if ident == word);
    let replaced = match last.delimiter() {
        Delimiter::Brace => {
            let words = if is(tokens.last(), "move") { 2 } else { 1 };
            let Some(begin) = tokens.len().checked_sub(words).filter(|begin| is(tokens.get(*begin), "async")) else {
                return Err(WRITE_ASYNC_FN);
            };
            let head = tokens.drain(begin..).collect();
            replace(head, &last)
        }
        Delimiter::Parenthesis if is(tokens.last(), "pin") => {
            let mut argument = Group::new(Delimiter::Parenthesis, replace_last_async_block(last.stream(), replace)?);
            argument.set_span(last.span());
            TokenTree::Group(argument).into()
        }
        _ => return Err(WRITE_ASYNC_FN),
    };
    let before: TokenStream = tokens.into_iter().collect();
    if mentions(before.clone(), "return") {
        return Err("a `return` before the last `async` block would go past it; write it as an `async fn`");
    }
    Ok(quote!(#before #replaced))
}
