//! [`Traced`] and [`Connection`]: the hooks' part of a call and of a connection, for bindings of
//! this wire protocol or another. Without the feature `trace` they are empty and cost nothing.

#![cfg_attr(
    not(all(feature = "channel", feature = "server")),
    allow(dead_code, unused_imports, reason = "each side uses its part")
)]

#[cfg(feature = "server")]
pub use self::imp::Invoking;
pub use self::imp::{Connection, Traced, TracedReply, new_seed};

pub use crate::own_error::OwnError;

/// Call that begins.
#[derive(Debug)]
#[cfg_attr(not(feature = "trace"), allow(dead_code, reason = "nobody looks at it"))]
pub struct Begin<'a> {
    /// The connection.
    pub connection: &'a Connection,
    /// Number of the call on its connection.
    pub request_id: u64,
    /// The encoded request.
    pub message: &'a [u8],
    /// True if a descriptor travels with the request.
    pub has_fd: bool,
    /// True if a thread waits for the reply.
    pub is_blocking: bool,
    /// True if the accepting end of the connection calls.
    pub is_from_acceptor: bool,
    /// Id of the flow in the form of the bindings, if they have one.
    pub own_flow_id: Option<u64>,
}

#[cfg(feature = "trace")]
mod imp {
    use core::sync::atomic::AtomicU64;
    use std::sync::Arc;

    use esatto_protozero::service::{Kind, Method, Service};

    use super::{Begin, OwnError};
    use crate::call_error::CallError;
    use crate::hooks::{self, Call, End, Hooks, Rejected, Reply};
    use crate::peer::Peer;
    use crate::status::{Code, Status};

    /// Identity of a connection, for hooks.
    #[derive(Clone, Debug)]
    pub struct Connection(Arc<hooks::Connection>);

    impl Default for Connection {
        fn default() -> Self {
            Self::with(0, None, None)
        }
    }

    impl Connection {
        /// Makes the identity of a connection with this number; 0 if there is none.
        pub fn new(seed: u64) -> Self {
            Self::with(seed, None, None)
        }

        fn with(seed: u64, peer_pid: Option<i32>, peer_uid: Option<i32>) -> Self {
            Self(Arc::new(hooks::Connection { seed, peer_pid, peer_uid, word: AtomicU64::new(0) }))
        }

        /// Returns the number of the connection; 0 without one, and without the feature `trace`.
        pub fn seed(&self) -> u64 {
            self.0.seed
        }

        /// Takes the seed that the client told, which the host repeats.
        pub fn accept_seed(&mut self, seed: u64) {
            *self = Self::with(seed, self.0.peer_pid, self.0.peer_uid);
        }

        /// Tells the process at the other end.
        pub fn set_peer(&mut self, peer: &Peer) {
            // Without credentials, the user is -1 on UNIX sockets, and 0 on others.
            let is_known = peer.pid.is_some();
            *self = Self::with(self.0.seed, peer.pid, is_known.then_some(peer.uid));
        }

        /// Tells of a request for something that the server lacks.
        #[inline]
        #[cfg_attr(not(feature = "server"), allow(dead_code, reason = "of the server"))]
        pub fn rejected(&self, request_id: u64, service: Option<&'static Service>, method_id: u32) {
            if hooks::is_installed() {
                (hooks::table().rejected)(&self.0, &Rejected { request_id, service, method_id });
            }
        }
    }

    /// Call that hooks see; empty if they do not.
    #[derive(Clone, Debug, Default)]
    pub struct Traced(Option<Arc<Call>>);

    /// Ends a reply when it is dropped.
    #[derive(Debug, Default)]
    pub struct TracedReply(Option<Arc<Call>>);

    impl Traced {
        /// Tells that a client is about to send a call, which `begin` describes if hooks may see
        /// it.
        #[inline(always)]
        pub fn request<'a>(method: &'static Method, begin: impl FnOnce() -> Begin<'a>) -> Self {
            if hooks::may_be_enabled(method) { Self::begin(method, &begin(), false) } else { Self(None) }
        }

        /// Tells that a server has received a call, before its method runs.
        #[inline(always)]
        pub fn invocation<'a>(method: &'static Method, begin: impl FnOnce() -> Begin<'a>) -> Self {
            if hooks::may_be_enabled(method) { Self::begin(method, &begin(), true) } else { Self(None) }
        }

        #[cold]
        fn begin(method: &'static Method, begin: &Begin<'_>, is_server: bool) -> Self {
            let Some(site) = method.trace else { return Self(None) };
            let Some(hooks) = hooks::enabled(site) else { return Self(None) };
            let mut call = Call {
                is_server,
                request_id: begin.request_id,
                bytes: begin.message.len(),
                has_fd: begin.has_fd,
                is_blocking: begin.is_blocking,
                is_from_acceptor: begin.is_from_acceptor,
                own_flow_id: begin.own_flow_id,
                ..Call::new(method, site, Arc::clone(&begin.connection.0))
            };
            let begin_call = if is_server { hooks.invoke_begin } else { hooks.request_begin };
            call.token = begin_call(&call, begin.message);
            Self(Some(Arc::new(call)))
        }

        /// Becomes a further handle of a call, if hooks see it.
        #[inline(always)]
        #[cfg(feature = "server")]
        pub(crate) fn copy(&mut self, other: &Self) {
            if other.0.is_some() {
                self.copy_seen(other);
            }
        }

        #[cold]
        #[inline(never)]
        #[cfg(feature = "server")]
        fn copy_seen(&mut self, other: &Self) {
            self.clone_from(other);
        }

        #[inline]
        fn with(&self, f: impl FnOnce(&'static Hooks, &Call)) {
            if let Some(call) = &self.0 {
                f(hooks::table(), call);
            }
        }

        /// Tells that the call is on its way.
        #[inline]
        pub fn request_sent(&self) {
            self.with(|hooks, call| (hooks.request_sent)(call));
        }

        /// Returns true if the slice of the call lasts until its thread has the reply, so only that
        /// thread can end it.
        /// Returns false: no hook sees the call.
        #[inline]
        pub fn is_on_thread(&self) -> bool {
            self.0.as_ref().is_some_and(|call| call.is_blocking && call.method.kind == Kind::Unary)
        }

        /// Tells that the program takes a reply, until the result is dropped.
        #[inline]
        pub fn reply(&self, number: u64, message: &[u8], has_more: bool) -> TracedReply {
            self.reply_begin(&Reply { number, message, has_more, failure: None, error: None, is_in_method: false })
        }

        /// As [`reply`](Self::reply) for the only reply, which may be an error of the program.
        #[inline]
        pub fn reply_or_error(&self, message: &[u8], error: impl FnOnce() -> Option<OwnError>) -> TracedReply {
            if self.0.is_none() {
                return TracedReply(None);
            }
            let error = error();
            let (number, has_more, failure, is_in_method) = (1, false, None, false);
            self.reply_begin(&Reply { number, message, has_more, failure, error, is_in_method })
        }

        #[inline]
        fn reply_begin(&self, reply: &Reply<'_>) -> TracedReply {
            self.with(|hooks, call| (hooks.reply_begin)(call, reply));
            TracedReply(self.0.clone())
        }

        /// Tells that the call failed, by a reply or otherwise.
        #[inline]
        pub fn failed(&self, number: u64, error: &CallError) {
            if self.0.is_some() {
                self.failed_cold(number, error);
            }
        }

        #[cold]
        fn failed_cold(&self, number: u64, error: &CallError) {
            let end = match error {
                CallError::Status { status, .. } => {
                    let failure = Some((status.code(), status.text()));
                    let reply =
                        Reply { number, message: &[], has_more: false, failure, error: None, is_in_method: false };
                    drop(self.reply_begin(&reply));
                    return;
                }
                CallError::Disconnected(_) => End::Disconnected,
                CallError::Timeout(_) => End::Timeout,
                _ => End::Failed,
            };
            self.with(|hooks, call| (hooks.ended)(call, end));
        }

        /// Tells that a stream ended without a last message.
        #[inline]
        pub fn finished(&self) {
            self.with(|hooks, call| (hooks.ended)(call, End::Finished));
        }

        /// Tells that the program dropped the call.
        #[inline]
        pub fn cancelled(&self) {
            self.with(|hooks, call| (hooks.ended)(call, End::Cancelled));
        }

        /// Returns a guard for the time of the method, which may panic.
        #[inline]
        #[cfg(feature = "server")]
        pub fn invoking(self) -> Invoking {
            Invoking(self)
        }

        /// Tells that a server has queued a reply.
        #[inline]
        #[cfg(feature = "server")]
        pub fn reply_sent(&self, number: u64, message: &[u8], has_more: bool, failure: Option<&Status>) {
            self.with(|hooks, call| {
                let failure: Option<(Code, &str)> = failure.map(|status| (status.code(), status.text()));
                let is_in_method = call.is_in_method();
                if failure.is_some() {
                    call.note_failure();
                }
                (hooks.reply_sent)(call, &Reply { number, message, has_more, failure, error: None, is_in_method });
            });
        }

        /// As [`reply_sent`](Self::reply_sent) for the only reply, which may be an error of the
        /// program.
        #[inline]
        #[cfg(feature = "server")]
        pub fn reply_or_error_sent(&self, message: &[u8], error: impl FnOnce() -> Option<OwnError>) {
            self.with(|hooks, call| {
                let error = error();
                let is_in_method = call.is_in_method();
                if error.is_some() {
                    call.note_failure();
                }
                let (number, has_more, failure) = (1, false, None);
                (hooks.reply_sent)(call, &Reply { number, message, has_more, failure, error, is_in_method });
            });
        }
    }

    /// Ends the invocation when it is dropped.
    #[cfg(feature = "server")]
    #[derive(Debug)]
    pub struct Invoking(Traced);

    #[cfg(feature = "server")]
    impl Drop for Invoking {
        #[inline]
        fn drop(&mut self) {
            self.0.with(|hooks, call| {
                call.method_returned();
                (hooks.invoke_end)(call);
            });
        }
    }

    impl TracedReply {
        /// Returns one that tells nothing.
        pub const fn none() -> Self {
            Self(None)
        }

        /// Tells that the program has taken the reply, as a drop does.
        #[inline]
        pub fn end(self) {}
    }

    impl Drop for TracedReply {
        #[inline]
        fn drop(&mut self) {
            if let Some(call) = &self.0 {
                (hooks::table().reply_end)(call);
            }
        }
    }

    /// Returns a random number for a new connection.
    pub fn new_seed() -> u64 {
        let mut seed = [0; 8];
        // Without a random number, the connection has no flows.
        let _ = rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::NONBLOCK);
        u64::from_ne_bytes(seed)
    }
}

#[cfg(not(feature = "trace"))]
mod imp {
    use esatto_protozero::service::{Method, Service};

    use super::{Begin, OwnError};
    use crate::call_error::CallError;
    use crate::peer::Peer;
    #[cfg(feature = "server")]
    use crate::status::Status;

    /// Identity of a connection, for hooks.
    #[derive(Clone, Debug, Default)]
    pub struct Connection {}

    #[allow(clippy::unused_self, reason = "as with the feature")]
    impl Connection {
        /// Makes the identity of a connection with this number; 0 if there is none.
        #[inline]
        pub fn new(_: u64) -> Self {
            Self {}
        }

        /// Returns the number of the connection; 0 without one, and without the feature `trace`.
        #[inline]
        pub fn seed(&self) -> u64 {
            0
        }

        /// Takes the number that the connecting end told.
        #[inline]
        pub fn accept_seed(&mut self, _: u64) {}

        /// Tells the process at the other end.
        #[inline]
        pub fn set_peer(&mut self, _: &Peer) {}

        /// Tells of a request for something that the server lacks.
        #[inline]
        pub fn rejected(&self, _: u64, _: Option<&'static Service>, _: u32) {}
    }

    /// Call that hooks see; empty if they do not.
    #[derive(Clone, Debug, Default)]
    pub struct Traced;

    /// Ends a reply when it is dropped.
    #[derive(Debug, Default)]
    pub struct TracedReply;

    #[allow(clippy::unused_self, reason = "as with the feature")]
    impl Traced {
        /// Tells that a client is about to send a call.
        #[inline(always)]
        pub fn request<'a>(_: &'static Method, _: impl FnOnce() -> Begin<'a>) -> Self {
            Self
        }

        /// Tells that a server has received a call, before its method runs.
        #[inline(always)]
        pub fn invocation<'a>(_: &'static Method, _: impl FnOnce() -> Begin<'a>) -> Self {
            Self
        }

        /// Becomes a further handle of a call, if hooks see it.
        #[inline(always)]
        #[cfg(feature = "server")]
        pub(crate) fn copy(&mut self, _: &Self) {}

        /// Tells that the call is on its way.
        #[inline]
        pub fn request_sent(&self) {}

        /// Returns false: no hook sees the call.
        #[inline]
        pub fn is_on_thread(&self) -> bool {
            false
        }

        /// Tells that the program takes a reply, until the result is dropped.
        #[inline]
        pub fn reply(&self, _: u64, _: &[u8], _: bool) -> TracedReply {
            TracedReply
        }

        /// As [`reply`](Self::reply) for the only reply, which may be an error of the program.
        #[inline]
        pub fn reply_or_error(&self, _: &[u8], _: impl FnOnce() -> Option<OwnError>) -> TracedReply {
            TracedReply
        }

        /// Tells that the call failed, by a reply or otherwise.
        #[inline]
        pub fn failed(&self, _: u64, _: &CallError) {}

        /// Tells that a stream ended without a last message.
        #[inline]
        pub fn finished(&self) {}

        /// Tells that the program dropped the call.
        #[inline]
        pub fn cancelled(&self) {}

        /// Returns a guard for the time of the method, which may panic.
        #[inline]
        #[cfg(feature = "server")]
        pub fn invoking(self) -> Invoking {
            Invoking
        }

        /// As [`reply_sent`](Self::reply_sent) for the only reply, which may be an error of the
        /// program.
        #[inline]
        #[cfg(feature = "server")]
        pub fn reply_or_error_sent(&self, _: &[u8], _: impl FnOnce() -> Option<OwnError>) {}

        /// Tells that a server has queued a reply.
        #[inline]
        #[cfg(feature = "server")]
        pub fn reply_sent(&self, _: u64, _: &[u8], _: bool, _: Option<&Status>) {}
    }

    /// Ends the invocation when it is dropped.
    #[cfg(feature = "server")]
    #[derive(Debug)]
    pub struct Invoking;

    impl TracedReply {
        /// Returns one that tells nothing.
        pub const fn none() -> Self {
            Self
        }

        /// Tells that the program has taken the reply, as a drop does.
        #[inline]
        pub fn end(self) {}
    }

    /// Returns a random number for a new connection.
    pub fn new_seed() -> u64 {
        0
    }
}
