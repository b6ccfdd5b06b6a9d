//! Protobuf encoding straight into buffers that need not be contiguous, and decoding without
//! copies.
//!
//! A [`Message`] appends fields to a stream of byte ranges. A nested message borrows its parent, so
//! the parent cannot be written while the child is open, and dropping the child fills in its length:
//!
//! ```
//! use esatto_protozero::{Fields, HeapBuffer};
//!
//! let mut buffer = HeapBuffer::new();
//! let mut message = buffer.message();
//! message.varint(1, 150);
//! {
//!     let mut nested = message.begin(2);
//!     nested.string(1, "testing");
//! } // the length of field 2 is written here
//! drop(message);
//!
//! let bytes = buffer.to_vec();
//! assert_eq!(bytes, b"\x08\x96\x01\x12\x09\x0a\x07testing");
//!
//! let mut fields = Fields::new(&bytes);
//! assert_eq!(fields.next().unwrap().as_u64(), 150);
//! assert_eq!(fields.next().unwrap().as_bytes(), b"\x0a\x07testing");
//! assert!(fields.next().is_none() && !fields.is_malformed());
//! ```
//!
//! Writing to a parent while a child is open does not compile:
//!
//! ```compile_fail,E0499
//! let mut buffer = esatto_protozero::HeapBuffer::new();
//! let mut message = buffer.message();
//! let mut nested = message.begin(2);
//! message.varint(1, 150); // error: `message` is still borrowed by `nested`
//! nested.varint(1, 1);
//! ```
//!
//! The bytes are ordinary protobuf. Lengths of nested messages take one byte where the message is
//! short and lies in one range, else four (`docs/spec/protozero.md` §4).

#![no_std]
#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

#[allow(unsafe_code, reason = "the raw cursor, and the sinks that hand it memory")]
pub mod cursor;
mod decode;
#[cfg(feature = "alloc")]
pub mod framing;
mod index;
mod message;
#[cfg(feature = "alloc")]
mod owned;
mod repeated;
#[cfg(feature = "alloc")]
mod scattered_buffer;
pub mod view;
pub mod wire;
mod writer;

pub use cursor::fixed::{BufferFull, SliceBuffer, StaticBuffer, encode_into};
#[cfg(feature = "alloc")]
pub use cursor::heap::{HeapBuffer, append_to};
pub use cursor::scattered::{Delegate, Filled, ScatteredWriter};
pub use decode::{DecodeError, Field, Fields, Value};
pub use index::{Index, MAX_INDEXED_ID, MAX_SLOTS, Schema};
#[doc(hidden)]
pub use index::{Slot, slots, table, table_len};
pub use message::Message;
#[cfg(feature = "alloc")]
pub use owned::*;
pub use repeated::*;
#[cfg(feature = "alloc")]
pub use scattered_buffer::ScatteredBuffer;
pub use view::{Lookup, Scan, UnknownFields, View};
pub use writer::Writer;
