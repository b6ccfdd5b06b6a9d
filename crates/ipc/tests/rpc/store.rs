//! Binding of the service `Store` of `sample/store.proto`, in the shape that the generator prints.
//! The module is named after the service.

#![allow(dead_code, unreachable_pub, reason = "generated code has everything")]

use crate::messages::sample as types;

/// Service `sample.Store`.
pub static SERVICE: ::esatto_ipc::service::Service = ::esatto_ipc::service::Service {
    name: "Store",
    methods: &[
        ::esatto_ipc::service::Method {
            name: "Get",
            full_name: "Store.Get",
            kind: ::esatto_ipc::service::Kind::Unary,
            trace: Some(&trace::GET),
        },
        ::esatto_ipc::service::Method {
            name: "Watch",
            full_name: "Store.Watch",
            kind: ::esatto_ipc::service::Kind::ServerStream,
            trace: Some(&trace::WATCH),
        },
        ::esatto_ipc::service::Method {
            name: "Note",
            full_name: "Store.Note",
            kind: ::esatto_ipc::service::Kind::OneWay,
            trace: Some(&trace::NOTE),
        },
    ],
};

/// Sites of traced methods. Methods without a category have none, and `trace: None`.
mod trace {
    pub(super) static GET: ::esatto_ipc::service::TraceSite = ::esatto_ipc::service::TraceSite::new("store");
    pub(super) static WATCH: ::esatto_ipc::service::TraceSite = ::esatto_ipc::service::TraceSite::new("store");
    pub(super) static NOTE: ::esatto_ipc::service::TraceSite = ::esatto_ipc::service::TraceSite::new("store");
}

/// The methods as types.
pub mod method {
    use super::types;

    /// `GetRequest` → `GetReply`
    #[derive(Debug)]
    pub struct Get;

    impl ::esatto_ipc::service::Rpc for Get {
        const SERVICE: &'static ::esatto_ipc::service::Service = &super::SERVICE;
        const METHOD: u32 = 1;
        type Request = types::GetRequest;
        type Reply = types::GetReply;
    }

    /// `WatchRequest` → `stream Event`
    #[derive(Debug)]
    pub struct Watch;

    impl ::esatto_ipc::service::Rpc for Watch {
        const SERVICE: &'static ::esatto_ipc::service::Service = &super::SERVICE;
        const METHOD: u32 = 2;
        type Request = types::WatchRequest;
        type Reply = types::Event;
    }

    /// `Text` → nothing
    #[derive(Debug)]
    pub struct Note;

    impl ::esatto_ipc::service::Rpc for Note {
        const SERVICE: &'static ::esatto_ipc::service::Service = &super::SERVICE;
        const METHOD: u32 = 3;
        type Request = types::Text;
        type Reply = types::Empty;
    }
}

/// Client of the service. Clones use the same connection.
#[derive(Clone, Debug)]
pub struct Client {
    channel: ::esatto_ipc::Channel,
}

impl Client {
    /// Makes a client on a channel. The first call binds the service.
    #[must_use]
    pub fn new(channel: &::esatto_ipc::Channel) -> Self {
        Self { channel: channel.clone() }
    }

    /// `GetRequest` → `GetReply`
    pub fn get(&self, request: &types::GetRequest) -> ::esatto_ipc::Call<'_, method::Get> {
        ::esatto_ipc::Call::new(&self.channel, request)
    }

    /// `WatchRequest` → `stream Event`
    pub fn watch(&self, request: &types::WatchRequest) -> ::esatto_ipc::StreamCall<'_, method::Watch> {
        ::esatto_ipc::StreamCall::new(&self.channel, request)
    }

    /// `Text` → nothing
    ///
    /// One-way: the server sends no reply.
    pub fn note(&self, request: &types::Text) -> ::esatto_ipc::OneWayCall<'_, method::Note> {
        ::esatto_ipc::OneWayCall::new(&self.channel, request)
    }
}

/// The service as async functions. A blocking server runs them on its own thread, so a function that
/// never awaits is plain code.
pub trait Server: Send + Sync + 'static {
    /// `GetRequest` → `GetReply`
    fn get(
        &self,
        context: &::esatto_ipc::server::Context,
        request: types::GetRequest,
    ) -> impl ::core::future::Future<Output = Result<types::GetReply, ::esatto_ipc::Status>> + Send;

    /// `WatchRequest` → `stream Event`
    fn watch(
        &self,
        context: &::esatto_ipc::server::Context,
        request: types::WatchRequest,
        replies: ::esatto_ipc::server::Replies<types::Event>,
    ) -> impl ::core::future::Future<Output = Result<(), ::esatto_ipc::Status>> + Send;

    /// `Text` → nothing
    ///
    /// One-way: the server sends no reply.
    fn note(
        &self,
        context: &::esatto_ipc::server::Context,
        request: types::Text,
    ) -> impl ::core::future::Future<Output = ()> + Send;
}

/// The service as functions for an event loop, which borrow the request and may answer later.
pub trait Handler {
    /// `GetRequest` → `GetReply`
    fn get(&mut self, call: ::esatto_ipc::server::Incoming<'_, method::Get>);

    /// `WatchRequest` → `stream Event`
    fn watch(&mut self, call: ::esatto_ipc::server::Incoming<'_, method::Watch>);

    /// `Text` → nothing
    ///
    /// One-way: the server sends no reply.
    fn note(&mut self, call: ::esatto_ipc::server::Incoming<'_, method::Note>);
}

/// Runs a call on a handler.
pub fn dispatch<H: Handler + ?Sized>(handler: &mut H, call: ::esatto_ipc::server::Invocation<'_>) {
    match call.method_id() {
        1 => handler.get(::esatto_ipc::server::Incoming::new(call)),
        2 => handler.watch(::esatto_ipc::server::Incoming::new(call)),
        3 => handler.note(::esatto_ipc::server::Incoming::new(call)),
        _ => {}
    }
}

/// Serves a [`Handler`].
#[derive(Clone, Debug)]
pub struct Serve<H>(pub H);

impl<H: Handler> ::esatto_ipc::server::Dispatch for Serve<H> {
    fn service(&self, index: usize) -> Option<&'static ::esatto_ipc::service::Service> {
        (index == 0).then_some(&SERVICE)
    }

    fn dispatch(&mut self, call: ::esatto_ipc::server::Invocation<'_>) {
        dispatch(&mut self.0, call);
    }
}

/// Serves a [`Server`]. Clones serve the same value.
#[derive(Debug)]
pub struct ServeAsync<S>(::std::sync::Arc<S>);

impl<S: Server> ServeAsync<S> {
    /// Makes one that all connections share.
    pub fn new(server: S) -> Self {
        Self(::std::sync::Arc::new(server))
    }
}

impl<S> Clone for ServeAsync<S> {
    fn clone(&self) -> Self {
        Self(::std::sync::Arc::clone(&self.0))
    }
}

impl<S: Server> ::esatto_ipc::server::Dispatch for ServeAsync<S> {
    fn service(&self, index: usize) -> Option<&'static ::esatto_ipc::service::Service> {
        (index == 0).then_some(&SERVICE)
    }

    fn dispatch(&mut self, call: ::esatto_ipc::server::Invocation<'_>) {
        let server = ::std::sync::Arc::clone(&self.0);
        match call.method_id() {
            1 => {
                call.unary::<method::Get, _>(move |context, request| async move { server.get(&context, request).await })
            }
            2 => call.stream::<method::Watch, _>(move |context, request, replies| async move {
                server.watch(&context, request, replies).await
            }),
            3 => {
                call.one_way::<method::Note, _>(
                    move |context, request| async move { server.note(&context, request).await },
                )
            }
            _ => {}
        }
    }
}
