//! The part that the layers of clients and servers have in common: making a layer, and the way of a
//! call that is not recorded.

use std::sync::Arc;

use crate::options::Options;
use crate::sites::Sites;

/// State of a layer. `R` says how bodies of requests are converted.
#[derive(Clone, Debug)]
pub(crate) struct Parts<R> {
    pub(crate) sites: &'static Sites,
    pub(crate) options: Arc<Options>,
    pub(crate) requests: R,
}

/// Implements a layer that holds [`Parts`], and its service, which has a function `call_recorded`.
macro_rules! layer {
    ($layer:ident, $service:ident, messages: $messages:literal) => {
        impl $layer {
            /// Makes a layer that records calls in a category.
            #[must_use]
            pub fn new(category: &'static esatto::Category) -> Self {
                let (sites, options) = (crate::sites::Sites::of(category), std::sync::Arc::default());
                Self { parts: crate::layer::Parts { sites, options, requests: crate::AsTheyAre } }
            }
        }

        impl<R> $layer<R> {
            crate::options::option_methods!();

            #[doc = concat!("Also counts the messages that the ", $messages, ".")]
            ///
            /// `convert` makes a body of the type that the inner service takes. It is called only
            /// for calls of gRPC that are recorded. With tonic:
            ///
            /// ```text
            /// .request_messages(tonic::body::Body::new)
            /// ```
            #[must_use]
            pub fn request_messages<B>(self, convert: fn(crate::TracedBody<B>) -> B) -> $layer<crate::Counted<B>> {
                let crate::layer::Parts { sites, options, .. } = self.parts;
                let requests = crate::request_bodies::Counted(convert);
                $layer { parts: crate::layer::Parts { sites, options, requests } }
            }
        }

        impl Default for $layer {
            /// Makes a layer that records calls in the category [`RPC`](crate::RPC).
            fn default() -> Self {
                Self::new(&crate::RPC)
            }
        }

        impl<S, R: Clone> tower_layer::Layer<S> for $layer<R> {
            type Service = $service<S, R>;

            fn layer(&self, inner: S) -> $service<S, R> {
                $service { inner, layer: self.clone() }
            }
        }

        impl<S, R, B, A> tower_service::Service<http::Request<B>> for $service<S, R>
        where
            S: tower_service::Service<http::Request<B>, Response = http::Response<A>>,
            R: crate::RequestBodies<B>,
            A: http_body::Body,
        {
            type Response = http::Response<crate::TracedBody<A>>;
            type Error = S::Error;
            type Future = crate::ResponseFuture<S::Future>;

            #[inline]
            fn poll_ready(&mut self, context: &mut core::task::Context<'_>) -> core::task::Poll<Result<(), S::Error>> {
                self.inner.poll_ready(context)
            }

            #[inline]
            fn call(&mut self, request: http::Request<B>) -> crate::ResponseFuture<S::Future> {
                if self.layer.parts.sites.category.is_enabled() {
                    return self.call_recorded(request);
                }
                crate::ResponseFuture::new(self.inner.call(request), None)
            }
        }
    };
}

pub(crate) use layer;
