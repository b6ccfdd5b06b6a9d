//! [`Server`]: the serving side of generated services.
//!
//! A service is written in one of two forms. The generated trait `Server` has an `async fn` for
//! each method; code that never awaits is plain code. The generated trait `Handler` has plain
//! functions that may answer later, and borrow the bytes of the request. A connection of either
//! form can be driven in three ways:
//!
//! - **blocking**: [`ServerConnection::block`], or [`Server::serve_blocking`] with a thread for
//!   each connection;
//! - **on your own event loop**: [`ServerConnection::pump`], after waiting for its
//!   [`AsFd`](std::os::fd::AsFd) as [`ServerConnection::interest`] says;
//! - **futures**: [`ServerConnection::drive`].

mod connection;
mod context;
mod counters;
mod dispatch;
mod incoming;
mod open_call;
mod replies;
mod reply;
mod running;
mod serve;
mod shared;
mod tasks;

use std::time::Duration;

pub use self::connection::{ServerConnection, Socket};
pub use self::context::Context;
pub use self::counters::ServerCounters;
pub use self::dispatch::{Dispatch, Invocation};
pub use self::incoming::Incoming;
pub use self::replies::Replies;
pub use self::reply::Reply;
#[cfg(feature = "tokio")]
pub(crate) use self::serve::PAUSE;
pub use self::serve::Server;
pub use crate::callee::SendError;

/// Bounds of a connection of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Calls that may be open. Further ones are refused with
    /// [`Code::ResourceExhausted`](crate::Code::ResourceExhausted).
    pub max_calls: usize,
    /// Bytes of the requests of the open calls. Further calls are refused in the same way. A single
    /// call is never refused for its size.
    pub max_request_bytes: usize,
    /// Open calls whose request came with a descriptor; further ones are refused in the same way.
    /// Also the descriptors that wait for the client, at which no more requests are read, and
    /// streams pause.
    pub max_fds: usize,
    /// Longest time between the first byte of a frame and its last. The connection ends after it.
    pub max_frame_time: Duration,
    /// Bytes of replies that wait for the client at which no more requests are read, and streams
    /// pause.
    pub pause_at: usize,
    /// Bytes of replies that may wait for the client. The connection ends beyond it.
    pub max_queued: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            max_calls: 1024,
            max_request_bytes: 16 << 20,
            max_fds: 64,
            max_frame_time: Duration::from_secs(30),
            pause_at: 256 << 10,
            max_queued: 16 << 20,
        }
    }
}
