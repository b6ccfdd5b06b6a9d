//! FIDL on Linux: the wire format of Fuchsia's interface definition language.
//!
//! `esatto-fidl-codegen` generates types from `.fidl` files. Each of them implements [`Wire`], by
//! which it becomes a message and comes back:
//!
//! ```
//! use esatto_fidl::{Str, Vector, decode, encode};
//!
//! // vector<string:8>:4
//! type Words = Vector<Str<8>, 4>;
//!
//! let words = vec!["one".to_owned(), "two".to_owned()];
//! let mut bytes = Vec::new();
//! encode::<Words>(&words, &mut bytes)?;
//! assert_eq!(decode::<Words>(&bytes, Vec::new())?, words);
//! # Ok::<(), esatto_fidl::Error>(())
//! ```
//!
//! # Modules
//!
//! | module | what it knows |
//! |---|---|
//! | [`wire`] | bytes ↔ values, version 2 of the format |
//! | [`header`] | the header of messages |
//! | [`handle`] | handles, which are file descriptors here |
//! | [`body`] | bodies of messages: payloads, results, errors |
//! | [`socket`] | messages with descriptors over UNIX sockets |
//! | [`protocol`] | descriptions of protocols and methods, which generated code contains |
//! | [`channel`] | the client's end of a connection: calls that are waited for or awaited, events |
//! | [`server`] | the server's end: methods, responders, senders of events |

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

pub mod body;
mod call_error;
pub mod channel;
mod error;
pub mod handle;
pub mod header;
mod identity;
mod link;
pub mod protocol;
pub mod server;
pub mod socket;
pub mod wire;

pub use crate::call_error::CallError;
pub use crate::channel::{Call, Channel, RawEvent};
pub use crate::error::{DecodeError, EncodeError, Error, Reason};
pub use crate::handle::{ClientEnd, Handle, ServerEnd, endpoints};
pub use crate::header::{Header, Strictness};
pub use crate::link::MAX_WAITING_BYTES;
pub use crate::protocol::{Method, MethodInfo, MethodKind, Openness, Protocol};
pub use crate::server::{EventSender, Progress, Responder, Server};
pub use crate::wire::{
    Array, Boxed, Decoder, Encoder, Optional, Place, Str, Vector, Wire, decode, encode, encode_with_handles,
};
pub use esatto_ipc::service::TraceSite;
