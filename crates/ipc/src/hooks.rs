//! [`Hooks`]: functions that observe calls, for an adapter that records RPCs in a trace
//! (`docs/spec/ipc-tracing.md §8`).
//!
//! This crate knows nothing of tracing. It calls a table of functions that a program installs.
//! Without a table, a call costs one relaxed load. Connection and request id connect a reply with
//! its request.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::OnceLock;

/// Table of functions, called on the thread that sends or handles the frame. They must not call
/// back into the connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Hooks {
    /// A client queued a call, whose request id is assigned.
    pub request_sent: fn(&Request),
    /// A client got a reply for which it waited.
    pub reply_received: fn(&Reply),
    /// A host decoded a call, before the method runs.
    pub invoke_begin: fn(&Request),
    /// A host queued a reply.
    pub reply_sent: fn(&Reply),
}

/// Call, as an argument of a [`Hooks`] function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// Number of the [`Client`](crate::Client) or [`Host`](crate::Host), unique in this process.
    pub connection: u64,
    /// Name of the method.
    pub method: &'static str,
    /// Number of the request on its connection.
    pub request_id: u64,
    /// Size of the arguments in bytes.
    pub size: usize,
    /// True if the client wants no reply.
    pub drop_reply: bool,
}

/// Reply, as an argument of a [`Hooks`] function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// Number of the [`Client`](crate::Client) or [`Host`](crate::Host), unique in this process.
    pub connection: u64,
    /// Number of the request.
    pub request_id: u64,
    /// True if the call succeeded.
    pub success: bool,
    /// True if further replies follow.
    pub has_more: bool,
    /// Size of the reply message in bytes.
    pub size: usize,
}

impl Hooks {
    /// Returns a table of functions that do nothing. Replace those that you need.
    pub const fn none() -> Self {
        Self { request_sent: |_| {}, reply_received: |_| {}, invoke_begin: |_| {}, reply_sent: |_| {} }
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

/// Returns the table, if there is one.
#[inline]
pub(crate) fn table() -> Option<&'static Hooks> {
    // Relaxed is enough here, because `OnceLock::get` acquires.
    if INSTALLED.load(Ordering::Relaxed) { TABLE.get() } else { None }
}

/// Assigns numbers to clients and hosts.
pub(crate) fn next_connection() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
