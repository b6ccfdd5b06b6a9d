//! The generated bindings: description, client and servers.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Ident, ItemTrait};

use super::method::{Kind, Method};

pub(super) struct Bindings<'a> {
    pub(super) ipc: TokenStream,
    pub(super) module: Ident,
    pub(super) name: String,
    pub(super) service: &'a ItemTrait,
    pub(super) methods: &'a [Method],
}

impl Bindings<'_> {
    pub(super) fn tokens(&self) -> TokenStream {
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
