//! [`Hooks`]: functions that observe the calls of traced methods, for an adapter that records them
//! in a trace (`docs/spec/ipc-tracing.md` §6–§8).
//!
//! This crate knows nothing of tracing. Without the feature `trace`, calls contain no code for
//! hooks. With it, a call of a method whose schema names a category costs one relaxed load until a
//! program installs a table.

#![cfg_attr(not(all(feature = "channel", feature = "server")), allow(dead_code, reason = "each side uses its part"))]

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use esatto_protozero::service::{Method, Service, TraceSite};

pub use crate::own_error::OwnError;
use crate::status::Code;

/// Table of functions, called on the thread that sends or handles the message. They must not call
/// back into the connection.
///
/// | events of a call | functions, in this order |
/// | --- | --- |
/// | client: sent, answered | `request_begin`, `request_sent`, `reply_begin`, `reply_end` |
/// | client: stream | `request_begin`, `request_sent`, for each reply `reply_begin`, `reply_end`; `ended` if the last reply was no message |
/// | client: one-way | `request_begin`, `request_sent` |
/// | client: cancelled, out of time, disconnected, not sent | `request_begin`, `request_sent`, `ended`; for a call that a thread waits for, `ended` is on that thread |
/// | server | `invoke_begin`, `reply_sent` in the method or later, `invoke_end` |
/// | server: unknown service or method | `rejected` |
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Hooks {
    /// Returns true if the category is recorded now. If not, nothing else is called for this call.
    pub enabled: fn(&'static TraceSite) -> bool,
    /// A client is about to write a call, whose number is assigned, with this encoded request.
    /// Returns [`Call::token`].
    pub request_begin: fn(&Call, &[u8]) -> u64,
    /// The socket has the call, or as much of it as it takes now; or the driver is about to write
    /// it. Also called if the call fails before that.
    pub request_sent: fn(&Call),
    /// The program takes a reply: before it is decoded.
    pub reply_begin: fn(&Call, &Reply<'_>),
    /// The program has taken the reply: after it was decoded, or after its callback.
    pub reply_end: fn(&Call),
    /// A client waits for no more replies, for another reason than the last message.
    pub ended: fn(&Call, End),
    /// A server has decoded a call with this encoded request, before its method runs. Returns
    /// [`Call::token`].
    pub invoke_begin: fn(&Call, &[u8]) -> u64,
    /// The method has returned. Its future may go on.
    pub invoke_end: fn(&Call),
    /// A server has queued a reply.
    pub reply_sent: fn(&Call, &Reply<'_>),
    /// A server lacks a service or a method. [`enabled`](Self::enabled) is not asked before.
    pub rejected: fn(&Connection, &Rejected),
}

/// Call, as an argument of a [`Hooks`] function.
#[derive(Debug)]
#[non_exhaustive]
pub struct Call {
    /// The method.
    pub method: &'static Method,
    /// Its category.
    pub site: &'static TraceSite,
    /// True at the side that was called.
    pub is_server: bool,
    /// Number of the connection, the same on both sides; 0 if the peer told none.
    pub seed: u64,
    /// The connection.
    pub connection: Arc<Connection>,
    /// Number of the call on its connection.
    pub request_id: u64,
    /// Size of the request message in bytes.
    pub bytes: usize,
    /// True if a descriptor travels with the request.
    pub has_fd: bool,
    /// True if a thread waits for the reply.
    pub is_blocking: bool,
    /// True if the accepting end of the connection calls, with numbers of its own.
    pub is_from_acceptor: bool,
    /// Id of the flow in the form of the bindings, if they have one.
    pub own_flow_id: Option<u64>,
    /// Result of [`Hooks::request_begin`] or [`Hooks::invoke_begin`].
    pub token: u64,
    /// [Mark](this_thread) of the method's thread, and if the method has returned.
    pub(crate) body: (usize, AtomicBool),
    /// The server has answered that the call failed.
    pub(crate) has_failed: AtomicBool,
}

/// Connection of a [`Call`], on one side.
#[derive(Debug)]
#[non_exhaustive]
pub struct Connection {
    /// Number of the connection, the same on both sides; 0 if the peer told none.
    pub seed: u64,
    /// Process at the other end of a UNIX socket, as the kernel tells it; others as they claim.
    pub peer_pid: Option<i32>,
    /// Its user.
    pub peer_uid: Option<i32>,
    /// For the adapter: 0 at first.
    pub word: AtomicU64,
}

/// Request for something that the server lacks.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Rejected {
    /// Number of the request on its connection.
    pub request_id: u64,
    /// The service, if it exists.
    pub service: Option<&'static Service>,
    /// Id of the method that it lacks; 0 if the client asked for a service.
    pub method_id: u32,
}

/// Reply, as an argument of a [`Hooks`] function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply<'a> {
    /// Number of the reply within its call, from 1.
    pub number: u64,
    /// The encoded reply message; empty if the call failed, or ended without a message.
    pub message: &'a [u8],
    /// True if further replies follow.
    pub has_more: bool,
    /// Reason of a failure.
    pub failure: Option<(Code, &'a str)>,
    /// The message is an error of the program, in the form of the bindings.
    pub error: Option<OwnError>,
    /// At the server: sent by the method before it returned.
    pub is_in_method: bool,
}

/// Reason why a client waits for no more replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The stream ended without a last message.
    Finished,
    /// The connection was lost.
    Disconnected,
    /// The deadline passed.
    Timeout,
    /// The program dropped the call.
    Cancelled,
    /// The peer lacks the method, or exceeded a limit.
    Failed,
}

impl Call {
    pub(crate) fn new(method: &'static Method, site: &'static TraceSite, connection: Arc<Connection>) -> Self {
        let body = (this_thread(), AtomicBool::new(false));
        Self {
            method,
            site,
            is_server: false,
            seed: connection.seed,
            connection,
            request_id: 0,
            bytes: 0,
            has_fd: false,
            is_blocking: false,
            is_from_acceptor: false,
            own_flow_id: None,
            token: 0,
            body,
            has_failed: AtomicBool::new(false),
        }
    }

    /// Notes that the method has returned.
    pub(crate) fn method_returned(&self) {
        self.body.1.store(true, Ordering::Relaxed);
    }

    /// Returns true in the method, on its thread.
    pub(crate) fn is_in_method(&self) -> bool {
        !self.body.1.load(Ordering::Relaxed) && this_thread() == self.body.0
    }

    pub(crate) fn note_failure(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// Returns true at the server if it has answered that the call failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Returns the id of the flow of the request, or of a one-way or unary call as a whole.
    #[must_use]
    pub fn flow_id(&self) -> u64 {
        flow_id(self.seed, self.request_id.wrapping_mul(2).wrapping_add(u64::from(self.is_from_acceptor)))
    }

    /// Returns the id of the flow of a streamed reply.
    #[must_use]
    pub fn reply_flow_id(&self, number: u64) -> u64 {
        flow_id(self.flow_id(), number)
    }
}

/// Returns a number that no other thread has at the same time. A method has returned before its
/// thread ends, so no later thread is taken for it. Costs less than the thread's id.
fn this_thread() -> usize {
    thread_local! {
        static MARK: u8 = const { 0 };
    }
    MARK.with(|mark| core::ptr::from_ref(mark).addr())
}

/// Returns the id number `k` of a seed (`docs/spec/ipc-tracing.md` §5). It is never 0.
#[must_use]
pub const fn flow_id(seed: u64, k: u64) -> u64 {
    let z = seed.wrapping_add(k.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let id = z ^ (z >> 31);
    if id == 0 { 1 } else { id }
}

impl Hooks {
    /// Returns a table of functions that do nothing, with all categories off. Replace those that
    /// you need.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            enabled: |_| false,
            request_begin: |_, _| 0,
            request_sent: |_| {},
            reply_begin: |_, _| {},
            reply_end: |_| {},
            ended: |_, _| {},
            invoke_begin: |_, _| 0,
            invoke_end: |_| {},
            reply_sent: |_, _| {},
            rejected: |_, _| {},
        }
    }
}

/// Installs the table, once per process.
///
/// # Errors
///
/// The given table, if one is installed already.
pub fn install(hooks: Hooks) -> Result<(), Hooks> {
    TABLE.set(hooks)?;
    INSTALLED.store(true, Ordering::Release);
    Ok(())
}

static INSTALLED: AtomicBool = AtomicBool::new(false);
static TABLE: OnceLock<Hooks> = OnceLock::new();

/// Returns true if there may be a table.
#[inline(always)]
pub(crate) fn is_installed() -> bool {
    // Relaxed is enough here, because `OnceLock::get` acquires.
    INSTALLED.load(Ordering::Relaxed)
}

/// Returns false if no hook sees the calls of the method now.
#[inline(always)]
pub(crate) fn may_be_enabled(method: &'static Method) -> bool {
    is_installed() && method.trace.is_some_and(TraceSite::may_be_enabled)
}

/// Returns the table if the site is recorded now.
#[cold]
pub(crate) fn enabled(site: &'static TraceSite) -> Option<&'static Hooks> {
    TABLE.get().filter(|hooks| (hooks.enabled)(site))
}

#[cold]
pub(crate) fn table() -> &'static Hooks {
    const NONE: Hooks = Hooks::none();
    TABLE.get().unwrap_or(&NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_ids_are_those_of_the_specification() {
        let seed = 0x0123_4567_89ab_cdef;
        assert_eq!(flow_id(seed, 2), 0xd573_529b_34a1_d093);
        assert_eq!(flow_id(seed, 3), 0x2f90_b72e_996d_ccbe);
        assert_eq!(flow_id(seed, 4), 0xa2d4_1933_4c46_67ec);
        let base = flow_id(seed, 2);
        assert_eq!(flow_id(base, 1), 0x77a6_486d_ff4e_0f94);
        assert_eq!(flow_id(base, 2), 0xd27a_6a41_6ad6_b4e8);
        assert_eq!(flow_id(1, 2), 0xbeeb_8da1_658e_ec67);
        assert_eq!(flow_id(0, 0), 1, "0 is replaced");
    }

    #[test]
    fn a_million_requests_have_different_ids() {
        let distinct = |ids: &mut Vec<u64>| {
            ids.sort_unstable();
            ids.windows(2).all(|pair| pair[0] != pair[1])
        };
        assert!(distinct(&mut (1..=1_000_000).map(|request| flow_id(42, 2 * request)).collect()), "one connection");
        let seeds = (1..=1000).map(|n: u64| flow_id(n, n));
        let ids = seeds.flat_map(|seed| (1..=1000).map(move |request| flow_id(seed, 2 * request)));
        assert!(distinct(&mut ids.collect()), "a thousand connections");
        assert!(distinct(&mut vec![flow_id(42, 2 * 7), flow_id(42, 2 * 7 + 1)]), "request 7 of either end");
    }
}
