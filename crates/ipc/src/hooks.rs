//! Points where calls can be observed, for the adapter that draws RPCs into a trace (`docs/spec/ipc-tracing.md §8`).
//!
//! This crate knows nothing of tracing: it calls a table of functions that somebody else installs. Without a table a call
//! costs one relaxed load. Requests and replies of one call are paired by connection and request id.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::OnceLock;

/// Functions called on the thread that sends or handles the frame. They must not call back into the connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Hooks {
    /// A client queued a call; its request id is assigned.
    pub request_sent: fn(&Request),
    /// A client got a reply it waited for.
    pub reply_received: fn(&Reply),
    /// A host decoded a call, before the method runs.
    pub invoke_begin: fn(&Request),
    /// A host queued a reply.
    pub reply_sent: fn(&Reply),
}

/// A call as a [`Hooks`] function sees it.
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
    /// No reply is wanted.
    pub drop_reply: bool,
}

/// A reply as a [`Hooks`] function sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// Number of the [`Client`](crate::Client) or [`Host`](crate::Host), unique in this process.
    pub connection: u64,
    /// Number of the request that is answered.
    pub request_id: u64,
    /// Whether the call succeeded.
    pub success: bool,
    /// Whether further replies follow.
    pub has_more: bool,
    /// Size of the reply message in bytes.
    pub size: usize,
}

impl Hooks {
    /// A table of functions that do nothing; replace those that are wanted.
    pub const fn none() -> Self {
        Self { request_sent: |_| {}, reply_received: |_| {}, invoke_begin: |_| {}, reply_sent: |_| {} }
    }
}

/// Installs the table, once per process.
///
/// # Errors
///
/// With the table that was to be installed, if there is one already.
pub fn install(hooks: Hooks) -> Result<(), Hooks> {
    TABLE.set(hooks)?;
    INSTALLED.store(true, Ordering::Release);
    Ok(())
}

static INSTALLED: AtomicBool = AtomicBool::new(false);
static TABLE: OnceLock<Hooks> = OnceLock::new();

/// The table, if there is one.
#[inline]
pub(crate) fn table() -> Option<&'static Hooks> {
    // Relaxed is enough to ask: `OnceLock::get` does the acquiring.
    if INSTALLED.load(Ordering::Relaxed) { TABLE.get() } else { None }
}

/// Numbers clients and hosts.
pub(crate) fn next_connection() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
