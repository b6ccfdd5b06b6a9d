//! `#[esatto::trace_rpc]`: bindings of a service that is written as a trait.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{
    Attribute, Error, FnArg, GenericArgument, Ident, ItemTrait, LitStr, Path, PathArguments, Result, ReturnType, Token,
    TraitItem, TraitItemFn, Type,
};

/// Returns the trait and its bindings. If there is a mistake, returns the trait unchanged with one
/// error.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    try_expand(attribute, item.clone()).unwrap_or_else(|error| {
        let error = error.into_compile_error();
        quote!(#error #item)
    })
}

/// The options of the trait, and of a method.
#[derive(Default)]
struct Options {
    category: Option<LitStr>,
    name: Option<LitStr>,
    module: Option<Ident>,
    krate: Option<Path>,
}

impl Options {
    fn parse(input: ParseStream<'_>, is_trait: bool) -> Result<Self> {
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unary,
    ServerStream,
    OneWay,
}

struct Method {
    docs: Vec<Attribute>,
    function: Ident,
    name: String,
    marker: Ident,
    kind: Kind,
    request: Type,
    reply: Type,
    category: Option<LitStr>,
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

impl Method {
    /// Reads a method, and makes an `async fn` a function whose future can be sent to another
    /// thread.
    fn take(function: &mut TraitItemFn, inherited: Option<&LitStr>) -> Result<Self> {
        if let Some(body) = &function.default {
            return Err(Error::new_spanned(body, "a method of a service has no body here"));
        }
        let signature = &mut function.sig;
        if !signature.generics.params.is_empty() {
            return Err(Error::new_spanned(&signature.generics, "a method of a service has no generic parameters"));
        }
        let Some(asyncness) = signature.asyncness.take() else {
            return Err(Error::new_spanned(signature.fn_token, "a method of a service is an `async fn`"));
        };
        let own = function.attrs.iter().position(|attribute| attribute.path().is_ident("rpc"));
        let own = match own.map(|index| function.attrs.remove(index)) {
            Some(attribute) => attribute.parse_args_with(|input: ParseStream<'_>| Options::parse(input, false))?,
            None => Options::default(),
        };
        let inputs: Vec<&FnArg> = signature.inputs.iter().collect();
        let (request, replies) = match inputs[..] {
            [FnArg::Receiver(receiver), FnArg::Typed(_), FnArg::Typed(request)] if is_shared(receiver) => {
                (request, None)
            }
            [FnArg::Receiver(receiver), FnArg::Typed(_), FnArg::Typed(request), FnArg::Typed(replies)]
                if is_shared(receiver) =>
            {
                (request, Some(&*replies.ty))
            }
            _ => {
                return Err(Error::new(
                    asyncness.span,
                    "expected `async fn name(&self, context: &Context, request: Request)`, and for a stream \
                     `replies: Replies<Reply>` after it",
                ));
            }
        };
        let request = (*request.ty).clone();
        let (kind, reply) = match (replies, &signature.output) {
            (Some(replies), ReturnType::Type(..)) => {
                let wrong = || Error::new_spanned(replies, "expected `Replies<Reply>`");
                (Kind::ServerStream, argument_of(replies, "Replies").ok_or_else(wrong)?)
            }
            (Some(replies), ReturnType::Default) => {
                return Err(Error::new_spanned(replies, "a method with a stream returns `Result<(), Status>`"));
            }
            (None, ReturnType::Type(_, output)) => {
                let wrong = || Error::new_spanned(output, "expected `Result<Reply, Status>`, or nothing if one-way");
                (Kind::Unary, argument_of(output, "Result").ok_or_else(wrong)?)
            }
            // The reply of a one-way method is never sent.
            (None, ReturnType::Default) => (Kind::OneWay, request.clone()),
        };
        let output = match &signature.output {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, output) => output.to_token_stream(),
        };
        signature.output = syn::parse_quote!(
            -> impl ::core::future::Future<Output = #output> + ::core::marker::Send
        );
        let name = own.name.map_or_else(|| camel_case(&signature.ident.unraw().to_string()), |name| name.value());
        let category = own.category.or_else(|| inherited.cloned()).filter(|category| !category.value().is_empty());
        Ok(Self {
            docs: function.attrs.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned().collect(),
            function: signature.ident.clone(),
            marker: identifier(&name),
            name,
            kind,
            request,
            reply,
            category,
        })
    }
}

fn is_shared(receiver: &syn::Receiver) -> bool {
    receiver.reference.is_some() && receiver.mutability.is_none() && receiver.colon_token.is_none()
}

/// Returns the first generic argument of a type with this name.
fn argument_of(outer: &Type, name: &str) -> Option<Type> {
    let Type::Path(path) = outer else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) => Some(inner.clone()),
        _ => None,
    }
}

struct Bindings<'a> {
    ipc: TokenStream,
    module: Ident,
    name: String,
    service: &'a ItemTrait,
    methods: &'a [Method],
}

impl Bindings<'_> {
    fn tokens(&self) -> TokenStream {
        let Self { ipc, module, service, .. } = self;
        let (vis, ident) = (&service.vis, &service.ident);
        let doc = format!("Bindings of the service [`{}`].", ident.unraw());
        let (description, client, server) = (self.description(), self.client(), self.server());
        let markers = self.methods.iter().enumerate().map(|(index, method)| {
            let Method { marker, request, reply, .. } = method;
            let id = u32::try_from(index + 1).unwrap_or(u32::MAX);
            quote! {
                impl #ipc::service::Rpc for #module::method::#marker {
                    const SERVICE: &'static #ipc::service::Service = &#module::SERVICE;
                    const METHOD: u32 = #id;
                    type Request = #request;
                    type Reply = #reply;
                }
            }
        });
        // Code with types of the user stands beside the trait, where these are known.
        let calls = self.methods.iter().map(|Method { docs, function, marker, kind, request, .. }| {
            let call = match kind {
                Kind::Unary => quote!(Call),
                Kind::ServerStream => quote!(StreamCall),
                Kind::OneWay => quote!(OneWayCall),
            };
            quote! {
                #(#docs)*
                pub fn #function(&self, request: &#request) -> #ipc::#call<'_, #module::method::#marker> {
                    #ipc::#call::new(self.channel(), request)
                }
            }
        });
        quote! {
            #service

            #(#markers)*

            #[allow(dead_code)]
            impl #module::Client {
                #(#calls)*
            }

            #[doc = #doc]
            #[allow(dead_code, non_camel_case_types, non_upper_case_globals, unreachable_pub)]
            #vis mod #module {
                #description
                #client
                #server
            }
        }
    }

    fn description(&self) -> TokenStream {
        let Self { ipc, name, methods, .. } = self;
        let descriptions = methods.iter().map(|method| {
            let Method { name: method_name, marker, .. } = method;
            let full_name = format!("{name}.{method_name}");
            let kind = match method.kind {
                Kind::Unary => quote!(Unary),
                Kind::ServerStream => quote!(ServerStream),
                Kind::OneWay => quote!(OneWay),
            };
            let trace = match &method.category {
                Some(_) => quote!(::core::option::Option::Some(&trace::#marker)),
                None => quote!(::core::option::Option::None),
            };
            quote! {
                #ipc::service::Method {
                    name: #method_name,
                    full_name: #full_name,
                    kind: #ipc::service::Kind::#kind,
                    trace: #trace,
                }
            }
        });
        let sites = methods.iter().filter_map(|Method { marker, category, .. }| {
            let category = category.as_ref()?;
            Some(quote! {
                pub(super) static #marker: #ipc::service::TraceSite = #ipc::service::TraceSite::new(#category);
            })
        });
        let markers = methods.iter().map(|Method { marker, name: method_name, .. }| {
            let doc = format!("`{name}.{method_name}`");
            quote! {
                #[doc = #doc]
                #[derive(Debug)]
                pub enum #marker {}
            }
        });
        quote! {
            /// The description of the service.
            pub static SERVICE: #ipc::service::Service =
                #ipc::service::Service { name: #name, methods: &[#(#descriptions),*] };

            mod trace {
                #(#sites)*
            }

            /// The methods, as types.
            pub mod method {
                #(#markers)*
            }
        }
    }

    fn client(&self) -> TokenStream {
        let ipc = &self.ipc;
        quote! {
            /// Client of the service.
            #[derive(Clone, Debug)]
            pub struct Client {
                channel: #ipc::Channel,
            }

            impl Client {
                /// Makes a client that calls over `channel`. The first call binds the service.
                #[must_use]
                pub fn new(channel: &#ipc::Channel) -> Self {
                    Self { channel: ::core::clone::Clone::clone(channel) }
                }

                /// Returns the channel of the client.
                #[must_use]
                pub fn channel(&self) -> &#ipc::Channel {
                    &self.channel
                }
            }
        }
    }

    fn server(&self) -> TokenStream {
        let Self { ipc, service, methods, .. } = self;
        let ident = &service.ident;
        let arms = methods.iter().enumerate().map(|(index, Method { function, marker, kind, .. })| {
            let id = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let (run, replies) = match kind {
                Kind::Unary => (quote!(unary), None),
                Kind::ServerStream => (quote!(stream), Some(quote!(replies))),
                Kind::OneWay => (quote!(one_way), None),
            };
            let replies: Vec<_> = replies.into_iter().collect();
            quote! {
                #id => call.#run::<method::#marker, _>(|context, request #(, #replies)*| async move {
                    super::#ident::#function(&*server, &context, request #(, #replies)*).await
                }),
            }
        });
        let handlers = methods.iter().map(|Method { docs, function, marker, .. }| {
            quote! {
                #(#docs)*
                fn #function(&mut self, call: #ipc::server::Incoming<'_, method::#marker>);
            }
        });
        let dispatches = methods.iter().enumerate().map(|(index, Method { function, .. })| {
            let id = u32::try_from(index + 1).unwrap_or(u32::MAX);
            quote!(#id => Handler::#function(handler, #ipc::server::Incoming::new(call)),)
        });
        let service_of = quote! {
            fn service(&self, index: usize) -> ::core::option::Option<&'static #ipc::service::Service> {
                (index == 0).then_some(&SERVICE)
            }
        };
        quote! {
            /// Serves calls by functions that are `async`. All clones share the value.
            #[derive(Debug)]
            pub struct ServeAsync<S>(::std::sync::Arc<S>);

            impl<S: super::#ident> ServeAsync<S> {
                /// Serves calls by `server`.
                #[must_use]
                pub fn new(server: S) -> Self {
                    Self(::std::sync::Arc::new(server))
                }
            }

            impl<S> ::core::clone::Clone for ServeAsync<S> {
                fn clone(&self) -> Self {
                    Self(::std::sync::Arc::clone(&self.0))
                }
            }

            impl<S: super::#ident> #ipc::server::Dispatch for ServeAsync<S> {
                #service_of

                fn dispatch(&mut self, call: #ipc::server::Invocation<'_>) {
                    let server = ::std::sync::Arc::clone(&self.0);
                    match call.method_id() {
                        #(#arms)*
                        _ => drop((call, server)),
                    }
                }
            }

            /// The service as functions for an event loop, which borrow the request and may answer
            /// later.
            pub trait Handler {
                #(#handlers)*
            }

            /// Hands a call to the function of its method.
            #[allow(unused_variables)]
            pub fn dispatch<H: Handler + ?::core::marker::Sized>(
                handler: &mut H,
                call: #ipc::server::Invocation<'_>,
            ) {
                match call.method_id() {
                    #(#dispatches)*
                    _ => drop(call),
                }
            }

            /// Serves calls by a [`Handler`].
            #[derive(Clone, Debug)]
            pub struct Serve<H>(pub H);

            impl<H: Handler> #ipc::server::Dispatch for Serve<H> {
                #service_of

                fn dispatch(&mut self, call: #ipc::server::Invocation<'_>) {
                    dispatch(&mut self.0, call);
                }
            }
        }
    }
}

/// Returns `get_all` as `GetAll`.
fn camel_case(name: &str) -> String {
    let capitalised = |word: &str| {
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
    };
    name.split('_').map(capitalised).collect()
}

/// Returns `TheStore` as `the_store`.
fn snake_case(name: &Ident) -> Ident {
    let mut module = String::new();
    for c in name.unraw().to_string().chars() {
        if c.is_ascii_uppercase() && !module.is_empty() && !module.ends_with('_') {
            module.push('_');
        }
        module.push(c.to_ascii_lowercase());
    }
    format_ident!("{}", identifier(&module), span = name.span())
}

/// Returns a name as an identifier; with an underscore if it means something to Rust.
fn identifier(name: &str) -> Ident {
    syn::parse_str(name).unwrap_or_else(|_| format_ident!("{name}_"))
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

    #[test]
    fn names_are_those_of_schemas() {
        assert_eq!(camel_case("get_all"), "GetAll");
        assert_eq!(snake_case(&format_ident!("TheStore")), "the_store");
        assert_eq!(identifier("Self"), "Self_");
    }
}
