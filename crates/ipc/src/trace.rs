//! [`Traced`]: the hooks' part of a call. Without the feature `trace` it is empty.

#![cfg_attr(
    not(all(feature = "channel", feature = "server")),
    allow(dead_code, unused_imports, reason = "each side uses its part")
)]

pub(crate) use self::imp::{Traced, TracedReply, accept_seed, new_seed};

/// Call that begins.
#[cfg_attr(not(feature = "trace"), allow(dead_code, reason = "nobody looks at it"))]
pub(crate) struct Begin<'a> {
    pub(crate) method: &'static crate::service::Method,
    pub(crate) seed: u64,
    pub(crate) request_id: u64,
    pub(crate) message: &'a [u8],
    pub(crate) has_fd: bool,
    pub(crate) is_blocking: bool,
}

#[cfg(feature = "trace")]
mod imp {
    use std::sync::Arc;

    use super::Begin;
    use crate::call_error::CallError;
    use crate::hooks::{self, Call, End, Hooks, Reply};
    use crate::status::{Code, Status};

    /// Call that hooks see; empty if they do not.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Traced(Option<Arc<Call>>);

    /// Ends a reply when it is dropped.
    #[derive(Debug, Default)]
    pub(crate) struct TracedReply(Option<Arc<Call>>);

    impl Traced {
        #[inline]
        pub(crate) fn request(begin: &Begin<'_>) -> Self {
            if hooks::is_installed() { Self::begin(begin, false) } else { Self(None) }
        }

        #[inline]
        pub(crate) fn invocation(begin: &Begin<'_>) -> Self {
            if hooks::is_installed() { Self::begin(begin, true) } else { Self(None) }
        }

        #[cold]
        fn begin(begin: &Begin<'_>, is_server: bool) -> Self {
            let Some(site) = begin.method.trace else { return Self(None) };
            let Some(hooks) = hooks::enabled(site) else { return Self(None) };
            let mut call = Call {
                is_server,
                seed: begin.seed,
                request_id: begin.request_id,
                bytes: begin.message.len(),
                has_fd: begin.has_fd,
                is_blocking: begin.is_blocking,
                ..Call::new(begin.method, site)
            };
            let begin_call = if is_server { hooks.invoke_begin } else { hooks.request_begin };
            call.token = begin_call(&call, begin.message);
            Self(Some(Arc::new(call)))
        }

        #[inline]
        fn with(&self, f: impl FnOnce(&'static Hooks, &Call)) {
            if let Some(call) = &self.0 {
                f(hooks::table(), call);
            }
        }

        #[inline]
        pub(crate) fn request_sent(&self) {
            self.with(|hooks, call| (hooks.request_sent)(call));
        }

        #[inline]
        pub(crate) fn reply(&self, number: u64, message: &[u8], has_more: bool) -> TracedReply {
            self.reply_begin(&Reply { number, message, has_more, failure: None, is_in_method: false })
        }

        #[inline]
        fn reply_begin(&self, reply: &Reply<'_>) -> TracedReply {
            self.with(|hooks, call| (hooks.reply_begin)(call, reply));
            TracedReply(self.0.clone())
        }

        /// Tells that the call failed, by a reply or otherwise.
        #[inline]
        pub(crate) fn failed(&self, number: u64, error: &CallError) {
            if self.0.is_some() {
                self.failed_cold(number, error);
            }
        }

        #[cold]
        fn failed_cold(&self, number: u64, error: &CallError) {
            let end = match error {
                CallError::Status { status, .. } => {
                    let failure = Some((status.code(), status.text()));
                    let reply = Reply { number, message: &[], has_more: false, failure, is_in_method: false };
                    drop(self.reply_begin(&reply));
                    return;
                }
                CallError::Disconnected(_) => End::Disconnected,
                CallError::Timeout(_) => End::Timeout,
                _ => End::Failed,
            };
            self.with(|hooks, call| (hooks.ended)(call, end));
        }

        #[inline]
        pub(crate) fn finished(&self) {
            self.with(|hooks, call| (hooks.ended)(call, End::Finished));
        }

        #[inline]
        pub(crate) fn cancelled(&self) {
            self.with(|hooks, call| (hooks.ended)(call, End::Cancelled));
        }

        #[inline]
        #[cfg(feature = "server")]
        pub(crate) fn invoke_end(&self) {
            self.with(|hooks, call| {
                call.method_returned();
                (hooks.invoke_end)(call);
            });
        }

        #[inline]
        #[cfg(feature = "server")]
        pub(crate) fn reply_sent(&self, number: u64, message: &[u8], has_more: bool, failure: Option<&Status>) {
            self.with(|hooks, call| {
                let failure: Option<(Code, &str)> = failure.map(|status| (status.code(), status.text()));
                let is_in_method = call.is_in_method();
                (hooks.reply_sent)(call, &Reply { number, message, has_more, failure, is_in_method });
            });
        }
    }

    impl TracedReply {
        pub(crate) const fn none() -> Self {
            Self(None)
        }

        /// Tells that the program has taken the reply, as a drop does.
        #[inline]
        pub(crate) fn end(self) {}
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
    pub(crate) fn new_seed() -> u64 {
        let mut seed = [0; 8];
        // Without a random number, the connection has no flows.
        let _ = rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::NONBLOCK);
        u64::from_ne_bytes(seed)
    }

    /// Returns the seed that a host repeats.
    pub(crate) fn accept_seed(seed: u64) -> u64 {
        seed
    }
}

#[cfg(not(feature = "trace"))]
mod imp {
    use super::Begin;
    use crate::call_error::CallError;
    #[cfg(feature = "server")]
    use crate::status::Status;

    #[derive(Clone, Debug, Default)]
    pub(crate) struct Traced;

    #[derive(Debug, Default)]
    pub(crate) struct TracedReply;

    #[allow(clippy::unused_self, reason = "as with the feature")]
    impl Traced {
        #[inline]
        pub(crate) fn request(_: &Begin<'_>) -> Self {
            Self
        }

        #[inline]
        pub(crate) fn invocation(_: &Begin<'_>) -> Self {
            Self
        }

        #[inline]
        pub(crate) fn request_sent(&self) {}

        #[inline]
        pub(crate) fn reply(&self, _: u64, _: &[u8], _: bool) -> TracedReply {
            TracedReply
        }

        #[inline]
        pub(crate) fn failed(&self, _: u64, _: &CallError) {}

        #[inline]
        pub(crate) fn finished(&self) {}

        #[inline]
        pub(crate) fn cancelled(&self) {}

        #[inline]
        #[cfg(feature = "server")]
        pub(crate) fn invoke_end(&self) {}

        #[inline]
        #[cfg(feature = "server")]
        pub(crate) fn reply_sent(&self, _: u64, _: &[u8], _: bool, _: Option<&Status>) {}
    }

    impl TracedReply {
        pub(crate) const fn none() -> Self {
            Self
        }

        #[inline]
        pub(crate) fn end(self) {}
    }

    pub(crate) fn new_seed() -> u64 {
        0
    }

    pub(crate) fn accept_seed(_: u64) -> u64 {
        0
    }
}
