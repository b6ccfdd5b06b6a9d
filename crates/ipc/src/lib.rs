//! A small RPC library over UNIX sockets, TCP and vsock, whose protocol is that of the tracing
//! service (`docs/spec/wire-protocol.md`).
//!
//! `esatto-protozero-codegen` generates clients and servers from the services of a `.proto` file
//! (`Services::Ipc`):
//!
#![cfg_attr(all(feature = "channel", feature = "server"), doc = "```")]
#![cfg_attr(not(all(feature = "channel", feature = "server")), doc = "```ignore")]
//! use std::thread;
//! use std::time::Duration;
//!
//! use esatto_ipc::server::{Context, Replies};
//! use esatto_ipc::{Address, Channel, Code, Listener, Server, Status};
//! # #[allow(missing_docs)] mod messages {
//! #     include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rpc/sample/messages.rs"));
//! # }
//! # use messages::sample::*;
//! // The generated code has messages, and a module for the service: store::Client, store::Server.
//!
//! struct Shop;
//!
//! impl store::Server for Shop {
//!     async fn get(&self, _: &Context, request: GetRequest) -> Result<GetReply, Status> {
//!         match request.key {
//!             Some(key) => Ok(GetReply { value: Some(key), ..GetReply::default() }),
//!             None => Err(Status::new(Code::InvalidArgument, "a key is missing")),
//!         }
//!     }
//!
//!     async fn watch(
//!         &self,
//!         _: &Context,
//!         request: WatchRequest,
//!         mut replies: Replies<Event>,
//!     ) -> Result<(), Status> {
//!         for number in 0..request.count.unwrap_or(0) {
//!             // Waits while the client does not read.
//!             replies.send(&Event { number: Some(number), ..Event::default() }).await?;
//!         }
//!         Ok(())
//!     }
//!
//!     async fn note(&self, context: &Context, note: Text) {
//!         println!("process {:?} says {:?}", context.peer().pid, note.text);
//!     }
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let address = Address::parse("@shop")?;
//!     let listener = Listener::bind(&address)?;
//!     thread::spawn(move || Server::new(store::ServeAsync::new(Shop)).serve_blocking(&listener));
//!
//!     let channel = Channel::connect(&address, Duration::from_secs(1))?;
//!     let client = store::Client::new(&channel);
//!     let request = GetRequest { key: Some("apple".into()), ..GetRequest::default() };
//!     let reply = client.get(&request).timeout(Duration::from_secs(1)).wait()?;
//!     assert_eq!(reply.value, request.key);
//!     for event in client.watch(&WatchRequest { count: Some(3), ..WatchRequest::default() }) {
//!         println!("{:?}", event?.number);
//!     }
//!     client.note(&Text { text: Some("bye".into()), ..Text::default() }).send()?;
//!
//!     let error = client.get(&GetRequest::default()).wait().unwrap_err();
//!     assert_eq!(error.to_string(), "Store.Get failed: a key is missing (INVALID_ARGUMENT)");
//!     Ok(())
//! }
//! ```
//!
//! A call can be waited for, awaited, or answered by a callback: see [`channel`]. A server can block,
//! run on the program's own event loop, or be awaited: see [`server`]. Both work on any runtime
//! ([`readiness`]).
//!
//! # Modules
//!
//! From bottom to top:
//!
//! | module | what it knows |
//! |---|---|
//! | [`address`] | addresses of services: syntax, environment, defaults |
//! | [`sys`] | sockets: non-blocking streams, descriptor passing, credentials. The only module with `unsafe` |
//! | [`frame`] | bytes ↔ frames, without I/O and without copies |
//! | [`peer`] | identity of the peer |
//! | [`foreign_fd`] | descriptors of other processes, and how they are closed |
//! | [`client`], [`host`] | the two sides for methods by name, without I/O, for programs that count their bytes |
//! | [`connection`] | a stream with its buffers, for event loops; bounds and back-pressure |
//! | [`blocking_client`] | a client by name that waits for replies |
//! | [`service`] | descriptions of services, which generated code contains |
//! | [`caller`], [`callee`] | the two sides for generated code, without I/O |
//! | [`channel`] | the calling side of a connection: blocking, callbacks, futures |
//! | [`server`] | the serving side: blocking, event loop, futures |
//! | [`hooks`] | functions that observe the calls of traced methods |
//!
//! [`host`] and [`Listener`] exist with the feature `host`; [`caller`] and [`channel`] with `channel`;
//! [`callee`] and [`server`] with `server`, which includes `host`; [`hooks`] with `trace`; the module
//! `tokio` with `tokio`. Without features the crate has no dependency for them and no code.
//!
//! This crate knows no message of Perfetto. `esatto-ports` has the services of the tracing
//! protocol.

#![deny(unsafe_code)]
// These docs describe all features; without some of them, some items are not there.
#![cfg_attr(
    not(all(feature = "channel", feature = "server", feature = "tokio", feature = "trace")),
    allow(rustdoc::broken_intra_doc_links)
)]
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
#[cfg(any(feature = "channel", feature = "server"))]
mod clock;
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
pub mod observed;
#[cfg(any(feature = "channel", feature = "server", feature = "trace"))]
mod own_error;
#[cfg(any(feature = "channel", feature = "server"))]
mod passed_fds;
pub mod peer;
#[cfg(feature = "rpc")]
pub mod readiness;
#[cfg(any(feature = "channel", feature = "server"))]
mod scratch;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "simulated")]
#[doc(hidden)]
pub mod simulated;
#[cfg(feature = "rpc")]
mod status;
pub mod sys;
#[cfg(feature = "tokio")]
pub mod tokio;
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
pub use esatto_protozero::service;
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
