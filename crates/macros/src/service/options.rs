//! Options of `#[esatto::trace_rpc]` and of `#[rpc]`.

use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Error, Ident, LitStr, Path, Result, Token};

/// The options of the trait, and of a method.
#[derive(Default)]
pub(super) struct Options {
    pub(super) category: Option<LitStr>,
    pub(super) name: Option<LitStr>,
    pub(super) module: Option<Ident>,
    pub(super) krate: Option<Path>,
}

impl Options {
    pub(super) fn parse(input: ParseStream<'_>, is_trait: bool) -> Result<Self> {
        let mut options = Self::default();
        while !input.is_empty() {
            let word = input.call(Ident::parse_any)?;
            input.parse::<Token![=]>()?;
            match word.to_string().as_str() {
                "category" => set(&mut options.category, &word, category(input)?)?,
                "name" => set(&mut options.name, &word, name(input)?)?,
                "module" if is_trait => set(&mut options.module, &word, input.parse()?)?,
                "crate" if is_trait => set(&mut options.krate, &word, input.call(Path::parse_mod_style)?)?,
                _ if is_trait => {
                    return Err(Error::new(
                        word.span(),
                        "expected `category = \"…\"`, `name = \"…\"`, `module = …` or `crate = …`",
                    ));
                }
                _ => return Err(Error::new(word.span(), "expected `category = \"…\"` or `name = \"…\"`")),
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

fn set<T>(option: &mut Option<T>, word: &Ident, value: T) -> Result<()> {
    if option.replace(value).is_some() {
        return Err(Error::new(word.span(), "this option is given twice"));
    }
    Ok(())
}

fn category(input: ParseStream<'_>) -> Result<LitStr> {
    let text: LitStr = input.parse()?;
    if text.value().contains(',') || text.value().chars().any(char::is_control) {
        return Err(Error::new(text.span(), "this is one category: no comma and no control character"));
    }
    Ok(text)
}

fn name(input: ParseStream<'_>) -> Result<LitStr> {
    let text: LitStr = input.parse()?;
    let value = text.value();
    let is_name = value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !value.starts_with(|c: char| c.is_ascii_digit())
        && !value.is_empty();
    if is_name { Ok(text) } else { Err(Error::new(text.span(), "a name has letters, digits and underscores")) }
}
