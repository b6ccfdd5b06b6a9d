//! The options of `#[esatto::trace(…)]`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Ident, LitStr, Path, Result, Token, parenthesized};

/// The options of one function.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) category: Option<Path>,
    pub(crate) name: Option<LitStr>,
    pub(crate) args: Vec<Arg>,
    /// The span of `args(all)`, if it is given.
    pub(crate) all: Option<Span>,
    pub(crate) skip: Vec<Ident>,
    pub(crate) ret: Option<(Span, Form)>,
    pub(crate) err: Option<(Span, Form)>,
    pub(crate) track: Option<(Span, Expr)>,
    pub(crate) slices: Option<(Span, Slices)>,
    pub(crate) krate: Option<Path>,
}

/// One argument to record.
#[derive(Clone)]
pub(crate) struct Arg {
    pub(crate) name: String,
    pub(crate) form: Form,
    pub(crate) value: ArgValue,
}

#[derive(Clone)]
pub(crate) enum ArgValue {
    /// Returns the parameter of this name.
    Parameter(Ident),
    Expression(Box<Expr>),
}

/// The conversion of a value to an argument.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Value,
    Debug,
    Display,
}

impl Form {
    /// Returns `value`, which is a reference, in this form.
    pub(crate) fn wrap(self, krate: &TokenStream, value: TokenStream) -> TokenStream {
        match self {
            Self::Value => value,
            Self::Debug => quote!(#krate::debug(#value)),
            Self::Display => quote!(#krate::display(#value)),
        }
    }
}

impl Form {
    const fn sigil(self) -> &'static str {
        match self {
            Self::Value => "",
            Self::Debug => "?",
            Self::Display => "%",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slices {
    Lifetime,
    Polls,
}

pub(crate) const KNOWN: &str = "expected a category (first), `name = \"…\"`, `args(…)`, `skip(…)`, `ret`, `err`, `track = …`, `lifetime`, `polls` or `crate = …`";

impl Options {
    pub(crate) fn krate(&self) -> TokenStream {
        self.krate.as_ref().map_or_else(|| quote!(::esatto), |path| quote!(#path))
    }
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self::default();
        let mut first = true;
        while !input.is_empty() {
            options.parse_one(input, first)?;
            first = false;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        match (options.all, &options.skip[..]) {
            (None, [skipped, ..]) => Err(Error::new(skipped.span(), "`skip` needs `args(all)`")),
            _ => Ok(options),
        }
    }
}

impl Options {
    fn parse_one(&mut self, input: ParseStream<'_>, first: bool) -> Result<()> {
        // The next token tells an option from a category, which is the path of a static.
        let ahead = input.fork();
        let Ok(word) = ahead.call(Ident::parse_any) else {
            return self.parse_category(input, first);
        };
        let span = word.span();
        match word.to_string().as_str() {
            "name" if ahead.peek(Token![=]) => set(&mut self.name, span, name(input)?),
            "track" if ahead.peek(Token![=]) => set(&mut self.track, span, (span, value(input)?)),
            "crate" if ahead.peek(Token![=]) => {
                input.call(Ident::parse_any)?;
                input.parse::<Token![=]>()?;
                set(&mut self.krate, span, input.call(Path::parse_mod_style)?)
            }
            "args" if ahead.peek(syn::token::Paren) => self.parse_args(input),
            "skip" if ahead.peek(syn::token::Paren) => {
                input.parse::<Ident>()?;
                let content;
                parenthesized!(content in input);
                let names = Punctuated::<Ident, Token![,]>::parse_terminated_with(&content, Ident::parse_any)?;
                self.skip.extend(names);
                Ok(())
            }
            "ret" if is_end_of_option(&ahead) => set(&mut self.ret, span, (span, form(input, Form::Value)?)),
            "err" if is_end_of_option(&ahead) => set(&mut self.err, span, (span, form(input, Form::Display)?)),
            "lifetime" | "polls" if is_end_of_option(&ahead) => {
                input.parse::<Ident>()?;
                let slices = if word == "lifetime" { Slices::Lifetime } else { Slices::Polls };
                if self.slices.is_some() {
                    return Err(Error::new(span, "use `lifetime` or `polls`, not both; the default is both slices"));
                }
                self.slices = Some((span, slices));
                Ok(())
            }
            _ => self.parse_category(input, first),
        }
    }

    fn parse_category(&mut self, input: ParseStream<'_>, first: bool) -> Result<()> {
        let start = input.span();
        match input.call(Path::parse_mod_style) {
            // `nmae = "x"`, `arg(x)`: a typing error, not a category.
            Ok(path) if first && (input.is_empty() || input.peek(Token![,])) => {
                self.category = Some(path);
                Ok(())
            }
            _ => Err(Error::new(start, KNOWN)),
        }
    }

    fn parse_args(&mut self, input: ParseStream<'_>) -> Result<()> {
        input.parse::<Ident>()?;
        let content;
        parenthesized!(content in input);
        while !content.is_empty() {
            self.parse_arg(&content)?;
            if !content.is_empty() {
                content.parse::<Token![,]>()?;
            }
        }
        Ok(())
    }

    fn parse_arg(&mut self, input: ParseStream<'_>) -> Result<()> {
        let ahead = input.fork();
        if let Ok(word) = ahead.parse::<Ident>() {
            if word == "all" && (ahead.is_empty() || ahead.peek(Token![,])) {
                input.parse::<Ident>()?;
                return set(&mut self.all, word.span(), word.span());
            }
        }
        let short_form = parse_sigil(input)?;
        let start = input.fork();
        let (name, parameter) = parse_arg_name(input)?;
        if short_form.is_none() && input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            let form = parse_sigil(input)?.unwrap_or(Form::Value);
            self.args.push(Arg { name, form, value: ArgValue::Expression(input.parse()?) });
            return Ok(());
        }
        let is_text = start.peek(LitStr);
        if is_text || !(input.is_empty() || input.peek(Token![,])) {
            let name = if is_text { format!("{name:?}") } else { name };
            let form = short_form.map_or("", Form::sigil);
            return Err(Error::new(input.span(), format!("expected `=` and a value: `{name} = {form}value`")));
        }
        let value = match parameter {
            Some(parameter) => ArgValue::Parameter(parameter),
            None => ArgValue::Expression(start.parse()?),
        };
        self.args.push(Arg { name, form: short_form.unwrap_or(Form::Value), value });
        Ok(())
    }
}

/// Parses `name`, `dotted.name` or `"any text"`. Returns the identifier if it is a single one.
fn parse_arg_name(input: ParseStream<'_>) -> Result<(String, Option<Ident>)> {
    if input.peek(LitStr) {
        return Ok((input.parse::<LitStr>()?.value(), None));
    }
    let first = input.call(Ident::parse_any)?;
    let mut name = first.unraw().to_string();
    let mut single = Some(first);
    while input.peek(Token![.]) {
        input.parse::<Token![.]>()?;
        name.push('.');
        // In `self.0.1`, Rust reads `0.1` as one number.
        match input.parse::<Option<syn::Lit>>()? {
            Some(syn::Lit::Int(index)) => name.push_str(&index.to_string()),
            Some(syn::Lit::Float(indices)) => name.push_str(&indices.to_string()),
            Some(other) => return Err(Error::new_spanned(other, "expected the name of a field")),
            None => name.push_str(&input.call(Ident::parse_any)?.unraw().to_string()),
        }
        single = None;
    }
    Ok((name, single))
}

fn parse_sigil(input: ParseStream<'_>) -> Result<Option<Form>> {
    Ok(if input.peek(Token![?]) {
        input.parse::<Token![?]>()?;
        Some(Form::Debug)
    } else if input.peek(Token![%]) {
        input.parse::<Token![%]>()?;
        Some(Form::Display)
    } else {
        None
    })
}

/// Parses `name = "…"`.
fn name(input: ParseStream<'_>) -> Result<LitStr> {
    let name: LitStr = value(input)?;
    // As for the macros, which cannot say what to write in an attribute.
    let text = name.value();
    match text.split_once('{') {
        Some((_, rest)) if rest.contains('}') => Err(Error::new(
            name.span(),
            "the name is not a format string: write a plain name, and record the value with `args(…)`; a name with \
             braces needs `slice!(CATEGORY, dynamic: \"…\")` in the function instead of the attribute",
        )),
        _ => Ok(name),
    }
}

fn is_end_of_option(ahead: ParseStream<'_>) -> bool {
    ahead.is_empty() || ahead.peek(Token![,]) || ahead.peek(syn::token::Paren)
}

/// Parses the rest of `word`, `word(debug)` or `word(display)`.
fn form(input: ParseStream<'_>, default: Form) -> Result<Form> {
    input.parse::<Ident>()?;
    if !input.peek(syn::token::Paren) {
        return Ok(default);
    }
    let content;
    parenthesized!(content in input);
    let form: Ident = content.parse()?;
    let form = match form.to_string().as_str() {
        "debug" => Form::Debug,
        "display" => Form::Display,
        _ => return Err(Error::new(form.span(), "expected `debug` or `display`")),
    };
    if content.is_empty() { Ok(form) } else { Err(content.error("expected the end of the list")) }
}

/// Parses the rest of `word = value`.
fn value<T: Parse>(input: ParseStream<'_>) -> Result<T> {
    input.call(Ident::parse_any)?;
    input.parse::<Token![=]>()?;
    input.parse()
}

fn set<T>(option: &mut Option<T>, span: Span, value: T) -> Result<()> {
    if option.is_some() {
        return Err(Error::new(span, "this option is given twice"));
    }
    *option = Some(value);
    Ok(())
}
