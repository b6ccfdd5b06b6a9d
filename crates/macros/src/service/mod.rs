//! `#[esatto::trace_rpc]`: bindings of a service that is written as a trait.

mod bindings;
mod method;
mod names;
mod options;

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Error, ItemTrait, Result, TraitItem};

use self::bindings::Bindings;
use self::method::Method;
use self::names::snake_case;
use self::options::Options;

/// Returns the trait and its bindings. If there is a mistake, returns the trait unchanged with one
/// error.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    try_expand(attribute, item.clone()).unwrap_or_else(|error| {
        let error = error.into_compile_error();
        quote!(#error #item)
    })
}

fn try_expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = (|input: ParseStream<'_>| Options::parse(input, true)).parse2(attribute)?;
    let mut service: ItemTrait = syn::parse2(item)
        .map_err(|error| Error::new(error.span(), format!("`#[esatto::trace_rpc]` is for traits: {error}")))?;
    if !service.generics.params.is_empty() || service.generics.where_clause.is_some() {
        return Err(Error::new_spanned(&service.generics, "the trait of a service has no generic parameters"));
    }
    let mut methods = Vec::new();
    let mut markers = HashSet::new();
    for item in &mut service.items {
        let TraitItem::Fn(function) = item else {
            return Err(Error::new_spanned(item, "the trait of a service has methods only"));
        };
        let method = Method::take(function, options.category.as_ref())?;
        if !markers.insert(method.marker.to_string()) {
            return Err(Error::new(method.function.span(), format!("two methods are named `{}`", method.name)));
        }
        methods.push(method);
    }
    service.supertraits.push(syn::parse_quote!(::core::marker::Send));
    service.supertraits.push(syn::parse_quote!(::core::marker::Sync));
    service.supertraits.push(syn::parse_quote!('static));
    let bindings = Bindings {
        ipc: options.krate.map_or_else(|| quote!(::esatto_ipc), |path| quote!(#path)),
        module: options.module.unwrap_or_else(|| snake_case(&service.ident)),
        name: options.name.map_or_else(|| service.ident.unraw().to_string(), |name| name.value()),
        service: &service,
        methods: &methods,
    };
    Ok(bindings.tokens())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(attribute: TokenStream, item: TokenStream) -> String {
        try_expand(attribute, item).map(|tokens| tokens.to_string()).expect_err("refused").to_string()
    }

    #[test]
    fn mistakes_are_told_in_words() {
        for (attribute, item, message) in [
            (
                quote!(),
                quote!(
                    struct S;
                ),
                "`#[esatto::trace_rpc]` is for traits: expected `trait`",
            ),
            (
                quote!(color = "x"),
                quote!(
                    trait S {}
                ),
                "expected `category = \"…\"`, `name = \"…\"`, `module",
            ),
            (
                quote!(category = "a,b"),
                quote!(
                    trait S {}
                ),
                "this is one category",
            ),
            (
                quote!(name = "a b"),
                quote!(
                    trait S {}
                ),
                "a name has letters, digits and underscores",
            ),
            (
                quote!(name = "a", name = "b"),
                quote!(
                    trait S {}
                ),
                "this option is given twice",
            ),
            (
                quote!(),
                quote!(
                    trait S<T> {}
                ),
                "the trait of a service has no generic parameters",
            ),
            (
                quote!(),
                quote!(
                    trait S {
                        const X: u32;
                    }
                ),
                "the trait of a service has methods only",
            ),
            (
                quote!(),
                quote!(
                    trait S {
                        fn a(&self, c: &C, r: R);
                    }
                ),
                "a method of a service is an `async fn`",
            ),
            (
                quote!(),
                quote!(
                    trait S {
                        async fn a(&self, c: &C, r: R) {}
                    }
                ),
                "has no body here",
            ),
            (
                quote!(),
                quote!(
                    trait S {
                        async fn a(&self, r: R);
                    }
                ),
                "expected `async fn name(&self, context:",
            ),
            (
                quote!(),
                quote!(
                    trait S {
                        async fn a(&mut self, c: &C, r: R);
                    }
                ),
                "expected `async fn name(&self,",
            ),
            (
                quote!(),
                quote!(
                    trait S {
                        async fn a(&self, c: &C, r: R) -> u32;
                    }
                ),
                "expected `Result<Reply, Status>`",
            ),
            (
                quote!(),
                quote!(
                    trait S {
                        async fn a(&self, c: &C, r: R, s: X) -> Y;
                    }
                ),
                "expected `Replies<Reply>`",
            ),
            (
                quote!(),
                quote!(
                    trait S {
                        async fn a(&self, c: &C, r: R, s: Replies<X>);
                    }
                ),
                "a method with a stream returns",
            ),
            (
                quote!(),
                quote!(
                    trait S {
                        #[rpc(module = x)]
                        async fn a(&self, c: &C, r: R);
                    }
                ),
                "expected `category = \"…\"` or `name = \"…\"`",
            ),
            (
                quote!(),
                quote!(
                    trait S {
                        async fn a(&self, c: &C, r: R);
                        #[rpc(name = "A")]
                        async fn b(&self, c: &C, r: R);
                    }
                ),
                "two methods are named `A`",
            ),
        ] {
            let told = error(attribute, item);
            assert!(told.contains(message), "{told}");
        }
    }
}
