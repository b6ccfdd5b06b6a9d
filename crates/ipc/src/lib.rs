//! The socket protocol between the tracing service and its clients (`docs/spec/wire-protocol.md`).
//!
//! From bottom to top:
//!
//! | module | what it knows |
//! |---|---|
//! | [`address`] | addresses of services: syntax, environment, defaults |
//! | [`sys`] | sockets: non-blocking streams, descriptor passing, credentials. The only module with `unsafe` |
//! | [`frame`] | bytes ↔ frames, without I/O and without copies |
//! | [`client`], [`host`] | the two sides of the RPC layer, without I/O |
//! | [`peer`] | identity of the peer |
//! | [`foreign_fd`] | descriptors of other processes, and how they are closed |
//! | [`connection`] | a stream with its buffers, for event loops; bounds and back-pressure |
//! | [`blocking_client`] | a client that waits for replies |
//! | [`hooks`] | functions that observe calls |
//!
//! [`host`] and [`Listener`] are the service's side, and exist with the feature `host`.
//!
//! This crate knows no message of Perfetto. `esatto-ports` has the services of the tracing
//! protocol.

#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

pub mod address;
pub mod blocking_client;
#[cfg(feature = "rpc")]
mod call_error;
#[cfg(feature = "server")]
pub mod callee;
#[cfg(feature = "channel")]
pub mod caller;
#[cfg(feature = "channel")]
pub mod channel;
pub mod client;
pub mod connection;
mod error;
pub mod foreign_fd;
pub mod frame;
mod frame_size;
#[cfg(feature = "trace")]
pub mod hooks;
#[cfg(feature = "host")]
pub mod host;
#[cfg(any(feature = "channel", feature = "server"))]
mod passed_fds;
pub mod peer;
#[cfg(feature = "rpc")]
pub mod readiness;
#[cfg(feature = "server")]
pub mod server;
#[cfg(any(feature = "host", feature = "rpc"))]
pub mod service;
#[cfg(feature = "rpc")]
mod status;
pub mod sys;
#[cfg(feature = "tokio")]
pub mod tokio;
#[cfg(any(feature = "channel", feature = "server"))]
mod trace;
#[cfg(any(feature = "host", feature = "rpc"))]
mod trace_site;
mod trusted_peer;

pub use address::{Address, AddressError, Family};
pub use blocking_client::BlockingClient;
#[cfg(feature = "rpc")]
pub use call_error::CallError;
#[cfg(feature = "channel")]
pub use channel::{Call, Channel, ChannelLimits, OneWayCall, StreamCall};
pub use client::{Client, ClientEvent, RequestId};
pub use connection::{Connection, Limits};
pub use error::Error;
pub use foreign_fd::{Admission, Disposal, ForeignFd};
pub use frame::{Frame, FrameBody, FrameDecoder};
#[cfg(feature = "host")]
pub use host::{Host, HostEvent, Invoke};
pub use peer::Peer;
#[cfg(feature = "rpc")]
pub use readiness::{Interest, Readiness};
#[cfg(feature = "server")]
pub use server::{Server, ServerConnection, ServerLimits};
#[cfg(feature = "rpc")]
pub use status::{Code, Status};
#[cfg(feature = "host")]
pub use sys::Listener;
pub use sys::{ConnectAttempt, Stream};
