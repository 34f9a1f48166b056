//! The options of an attribute: `name = value`, each at most once, separated by commas.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, ExprPath, Ident, Lit, LitStr, Path, Result, Token};

/// One of the attributes, as its messages call it.
pub(crate) struct Attribute {
    /// Its name, without `#[…]`.
    pub(crate) name: &'static str,
    /// Its options: the name, and how one is written.
    pub(crate) options: &'static [(&'static str, &'static str)],
}

impl Attribute {
    /// Reads options up to the end. `take` reads the value of the option that it is given.
    pub(crate) fn parse(
        &self,
        input: ParseStream<'_>,
        take: impl FnMut(&str, ParseStream<'_>) -> Result<()>,
    ) -> Result<()> {
        self.parse_after(&[], input, take).map(drop)
    }

    /// As [`parse`](Self::parse), where other attributes of the function have given the options `before` to the same job.
    /// Returns those that are given here.
    pub(crate) fn parse_after(
        &self,
        before: &[Ident],
        input: ParseStream<'_>,
        mut take: impl FnMut(&str, ParseStream<'_>) -> Result<()>,
    ) -> Result<Vec<Ident>> {
        let mut seen: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            let option = input
                .call(Ident::parse_any)
                .map_err(|error| Error::new(error.span(), format!("expected an option; {}", self.has())))?;
            if !self.options.iter().any(|(name, _)| option == name) {
                return Err(Error::new(option.span(), format!("there is no option `{option}`; {}", self.has())));
            }
            if seen.contains(&option) {
                return Err(Error::new(option.span(), format!("`{option}` is given twice")));
            }
            if before.contains(&option) {
                let message =
                    format!("`{option}` is given twice: all schedules of a function are schedules of one job");
                return Err(Error::new(option.span(), message));
            }
            if !input.peek(Token![=]) || input.peek2(Token![,]) {
                return Err(Error::new(option.span(), format!("`{option}` needs a value: {}", self.example(&option))));
            }
            input.parse::<Token![=]>()?;
            if input.is_empty() {
                return Err(Error::new(option.span(), format!("`{option}` needs a value: {}", self.example(&option))));
            }
            take(&option.to_string(), input)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
            seen.push(option);
        }
        Ok(seen)
    }

    fn has(&self) -> String {
        let options: Vec<_> = self.options.iter().map(|(_, example)| format!("`{example}`")).collect();
        format!("`#[{}]` has {}", self.name, options.join(", "))
    }

    fn example(&self, option: &Ident) -> String {
        let (_, example) = self.options.iter().find(|(name, _)| option == name).expect("only known options come here");
        format!("`{example}`")
    }
}

/// A text that is known when the program is linked: a literal, or the path of a `const`.
pub(crate) enum Text {
    Literal(LitStr),
    Path(ExprPath),
}

impl Parse for Text {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let value = ungroup(input.parse()?);
        match value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(Self::Literal(text)),
            Expr::Path(path) => Ok(Self::Path(path)),
            other => Err(Error::new(
                other.span(),
                "this must be a string literal or the path of a `const … : &str`: it is registered before any code runs",
            )),
        }
    }
}

impl ToTokens for Text {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Literal(text) => text.to_tokens(tokens),
            Self::Path(path) => path.to_tokens(tokens),
        }
    }
}

/// A name that becomes a part of keys in the store, such as a group's. A `const` is checked when the program starts.
pub(crate) fn key_name(input: ParseStream<'_>) -> Result<Text> {
    let text = input.parse()?;
    match &text {
        Text::Literal(literal) => check_key_name(literal)?,
        Text::Path(path) if path.path.segments.first().is_some_and(|first| first.ident == "Self") => {
            let message = "`Self` is not known where this is registered: write the name of the type";
            return Err(Error::new(path.span(), message));
        }
        Text::Path(_) => {}
    }
    Ok(text)
}

/// Like [`key_name`], but a literal.
pub(crate) fn key_name_literal(input: ParseStream<'_>) -> Result<LitStr> {
    let literal = string(input)?;
    check_key_name(&literal)?;
    Ok(literal)
}

fn check_key_name(literal: &LitStr) -> Result<()> {
    let name = literal.value();
    let reason = if name.is_empty() {
        "an empty name cannot be used".to_owned()
    } else if let Some(strange) = name.chars().find(|c| !(c.is_ascii_alphanumeric() || "._-".contains(*c))) {
        format!("`{}` cannot stand in a name", strange.escape_default())
    } else if name.len() > 64 {
        format!("{} characters are too many for a name", name.len())
    } else {
        return Ok(());
    };
    Err(Error::new(literal.span(), format!("{reason}: use 1 to 64 ASCII letters, digits, `.`, `_` or `-`")))
}

/// A string literal.
pub(crate) fn string(input: ParseStream<'_>) -> Result<LitStr> {
    match ungroup(input.parse()?) {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text),
        other => Err(Error::new(other.span(), "this must be a string literal")),
    }
}

/// One of a few words, written as a string literal; its index in `words`.
pub(crate) fn choice(input: ParseStream<'_>, words: &[&str]) -> Result<usize> {
    let literal = string(input)?;
    let given = literal.value();
    words.iter().position(|word| *word == given).ok_or_else(|| {
        let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
        Error::new(literal.span(), format!("there is no \"{given}\"; write {}", words.join(" or ")))
    })
}

/// The value of `crate = path`.
pub(crate) fn crate_path(input: ParseStream<'_>) -> Result<TokenStream> {
    let path = input
        .call(Path::parse_mod_style)
        .map_err(|error| Error::new(error.span(), "this must be the path of the crate, without quotes"))?;
    Ok(quote!(#path))
}

/// A `$value:literal` of a `macro_rules!` arrives in an invisible group.
pub(crate) fn ungroup(mut value: Expr) -> Expr {
    while let Expr::Group(group) = value {
        value = *group.expr;
    }
    value
}
