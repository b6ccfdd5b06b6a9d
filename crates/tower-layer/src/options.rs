//! Options that the layers of clients and servers have in common.

use core::fmt;
use std::borrow::Cow;
use std::sync::Arc;

use crate::name::RequestHead;

/// Returns the route of a request, such as `/users/{id}`.
type Route = dyn for<'a> Fn(&RequestHead<'a>) -> Option<Cow<'a, str>> + Send + Sync;

#[derive(Clone)]
pub(crate) struct Options {
    /// An instant for each message of a stream.
    pub(crate) messages: bool,
    /// The text that belongs to a status.
    pub(crate) status_messages: bool,
    /// Only calls that `traceparent` marks as sampled, or that have our header.
    pub(crate) only_sampled: bool,
    /// A slice for the whole call, on a lane.
    pub(crate) slices: bool,
    /// Clients send our header.
    pub(crate) own_header: bool,
    route: Option<Arc<Route>>,
}

impl Options {
    pub(crate) fn set_route(&mut self, route: Arc<Route>) {
        self.route = Some(route);
    }

    pub(crate) fn route<'a>(&self, head: &RequestHead<'a>) -> Option<Cow<'a, str>> {
        self.route.as_ref()?(head)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            messages: true,
            status_messages: false,
            only_sampled: false,
            slices: true,
            own_header: true,
            route: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { messages, status_messages, only_sampled, slices, own_header, route } = self;
        f.debug_struct("Options")
            .field("messages", messages)
            .field("status_messages", status_messages)
            .field("only_sampled", only_sampled)
            .field("slices", slices)
            .field("own_header", own_header)
            .field("has_route", &route.is_some())
            .finish()
    }
}

/// The methods of both layers that set these options.
macro_rules! option_methods {
    () => {
        /// Sets whether each message of a stream has an instant with an arrow to the other side.
        /// The default is true. The messages are counted in any case.
        #[must_use]
        pub fn messages(mut self, wanted: bool) -> Self {
            std::sync::Arc::make_mut(&mut self.parts.options).messages = wanted;
            self
        }

        /// Sets whether the end of a call has the text of its status (`grpc-message`). The default
        /// is false, because such texts may hold private data.
        #[must_use]
        pub fn status_messages(mut self, wanted: bool) -> Self {
            std::sync::Arc::make_mut(&mut self.parts.options).status_messages = wanted;
            self
        }

        /// Sets whether only sampled calls are recorded: those with a `traceparent` that says so,
        /// and those that already have the header of this crate. The default is false.
        #[must_use]
        pub fn only_sampled(mut self, wanted: bool) -> Self {
            std::sync::Arc::make_mut(&mut self.parts.options).only_sampled = wanted;
            self
        }

        /// Sets whether a call has a slice of its own. The default is true.
        ///
        /// Without slices, the begin of a call, its reply and its messages are instants on the
        /// threads on which they happen, with the same arrows. Programs whose `tracing` spans are
        /// slices of these calls already use this: see [the crate's
        /// documentation](crate#beside-tracing).
        #[must_use]
        pub fn slices(mut self, wanted: bool) -> Self {
            std::sync::Arc::make_mut(&mut self.parts.options).slices = wanted;
            self
        }

        /// Sets how the route of a request that is not of gRPC is found. Its name is then the
        /// method and the route, otherwise the method alone.
        ///
        /// A route is the pattern that a router matches, such as `/users/{id}`: names should be
        /// few, and hold no data. With axum:
        ///
        /// ```text
        /// .route(|request| Some(request.extensions().get::<MatchedPath>()?.as_str().into()))
        /// ```
        ///
        /// Routes are cut off after 256 bytes. The first 1024 names of calls that succeed count as
        /// constants of the program, which a session's filter of dynamic names keeps.
        #[must_use]
        pub fn route(
            mut self,
            route: impl for<'a> Fn(&crate::RequestHead<'a>) -> Option<std::borrow::Cow<'a, str>> + Send + Sync + 'static,
        ) -> Self {
            std::sync::Arc::make_mut(&mut self.parts.options).set_route(std::sync::Arc::new(route));
            self
        }
    };
}

pub(crate) use option_methods;
