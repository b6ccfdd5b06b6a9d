//! Protobuf without copies: messages are encoded directly into the memory from which they are sent,
//! and read where they lie.
//!
//! - **Writers append.** No message is built first, nothing is allocated, and no length is computed
//!   in advance. A field is a few stores, and the length of a nested message is filled in when it
//!   ends.
//! - **Memory may be in pieces**: chunks of a ring, pages of shared memory, slices on the heap. A
//!   message may be far larger than any of them, and a full piece can be sent before the message
//!   ends.
//! - **The compiler checks the nesting.** A nested message borrows its parent.
//! - **Readers are views.** They never allocate, never recurse, and accept any bytes without a
//!   panic.
//! - `no_std`, no dependencies.
//!
//! It is the encoder under every trace point of Esatto, and knows nothing of tracing. The wire
//! format is ordinary protobuf.
//!
//! # Five minutes
//!
//! ## Write
//!
//! A sink returns a root [`Message`], whose methods append fields in the order of the calls.
//! [`begin`](Message::begin) opens a nested message, which ends and gets its length when it is
//! dropped:
//!
//! ```
//! use esatto_protozero::HeapBuffer;
//!
//! let mut buffer = HeapBuffer::new();
//! let mut message = buffer.message();
//! message.varint(1, 150);
//! {
//!     let mut nested = message.begin(2);
//!     nested.string(1, "testing");
//! } // the length of field 2 is written here
//! drop(message);
//! assert_eq!(buffer.as_slice(), b"\x08\x96\x01\x12\x09\x0a\x07testing");
//! ```
//!
//! Wrong nesting does not compile. You cannot write to a parent while a child is open:
//!
//! ```compile_fail,E0499
//! # let mut buffer = esatto_protozero::HeapBuffer::new();
//! let mut message = buffer.message();
//! let mut nested = message.begin(2);
//! message.varint(1, 150); // error: `message` is still borrowed by `nested`
//! nested.varint(1, 1);
//! ```
//!
//! You cannot write to a message that has ended:
//!
//! ```compile_fail,E0382
//! # let mut buffer = esatto_protozero::HeapBuffer::new();
//! # let mut message = buffer.message();
//! let mut nested = message.begin(2);
//! drop(nested);
//! nested.varint(1, 1); // error: use of moved value
//! ```
//!
//! You cannot open two messages of one parent, or end the parent first:
//!
//! ```compile_fail,E0505
//! # let mut buffer = esatto_protozero::HeapBuffer::new();
//! # let mut message = buffer.message();
//! let mut nested = message.begin(2);
//! drop(message); // error: cannot move out of `message` because it is borrowed
//! nested.varint(1, 1);
//! ```
//!
//! You cannot use a buffer while a message is open in it:
//!
//! ```compile_fail,E0499
//! # let mut buffer = esatto_protozero::HeapBuffer::new();
//! let mut message = buffer.message();
//! buffer.clear(); // error: cannot borrow `buffer` as mutable more than once at a time
//! message.varint(1, 150);
//! ```
//!
//! The compiler does not see a guard that is leaked by [`core::mem::forget`]. A leak leaves no
//! wrong length: the whole root message is void and counted.
//!
//! ## Read
//!
//! [`Fields`] is an iterator over the fields of a message, in the order of the bytes. A nested
//! message is a field of bytes, from which another `Fields` can be made. [`View`] finds fields by
//! number:
//!
//! ```
//! use esatto_protozero::{Fields, View, kind};
//!
//! let bytes = b"\x08\x96\x01\x12\x09\x0a\x07testing";
//! let mut fields = Fields::new(bytes);
//! assert_eq!(fields.next().unwrap().as_u64(), 150);
//! assert_eq!(fields.next().unwrap().as_bytes(), b"\x0a\x07testing");
//! assert!(fields.next().is_none() && !fields.is_malformed());
//!
//! assert_eq!(View::new(bytes).last::<kind::Int64>(1), Some(150));
//! ```
//!
//! ## With a schema
//!
//! You need not remember field numbers. `esatto-protozero-codegen` turns a `.proto` file into typed
//! writers and readers over this crate, from a build script of three lines, as a plugin of protoc,
//! or on the command line. No protoc is needed. The folder `examples/` of the repository has a
//! program with its own schema. Generated code is used like this:
//!
//! ```
//! # mod shop {
//! #     use esatto_protozero::{self as pz, Lookup, Message};
//! #     pz::message! { writer OrderWriter; reader OrderReader; decoder OrderDecoder; fields 1, 2; }
//! #     pz::message! { writer ItemWriter; reader ItemReader; decoder ItemDecoder; fields 1; }
//! #     impl OrderWriter<'_> {
//! #         pub fn number(&mut self, v: u64) -> &mut Self { self.message().varint(1, v); self }
//! #         pub fn items(&mut self) -> ItemWriter<'_> { self.message().begin(2).into() }
//! #     }
//! #     impl ItemWriter<'_> { pub fn name(&mut self, v: &str) -> &mut Self { self.message().string(1, v); self } }
//! #     impl<'a, I: Lookup> OrderReader<'a, I> {
//! #         pub fn number(&self) -> Option<u64> { self.0.last::<pz::kind::Uint64>(1) }
//! #         pub fn items(&self) -> pz::Messages<'a, ItemReader<'a>> { self.0.messages(2) }
//! #     }
//! #     impl<'a, I: Lookup> ItemReader<'a, I> { pub fn name(&self) -> Option<&'a [u8]> { self.0.last::<pz::kind::Bytes>(1) } }
//! # }
//! # use shop::{OrderDecoder, OrderWriter};
//! use esatto_protozero::HeapBuffer;
//!
//! let mut buffer = HeapBuffer::<OrderWriter>::default();
//! let mut order = buffer.message();
//! order.number(42);
//! order.items().name("tea");
//! order.items().name("cups");
//! drop(order);
//!
//! let order = OrderDecoder::decode(buffer.as_slice());
//! assert_eq!(order.number(), Some(42));
//! assert_eq!(order.items().filter_map(|item| item.name()).collect::<Vec<_>>(), [&b"tea"[..], b"cups"]);
//! ```
//!
//! # Where to
//!
//! | sink | memory | grows | needs `alloc` |
//! | --- | --- | --- | --- |
//! | [`HeapBuffer`] | one piece on the heap | by moving | yes |
//! | [`ScatteredBuffer`] | a list of slices on the heap | by another slice | yes |
//! | [`append_to`] | a `Vec<u8>` of yours | by moving | yes |
//! | [`SliceBuffer`], [`encode_into`] | lent: `&mut [u8]`, `&mut [MaybeUninit<u8>]` | no: a message that does not fit is an error | no |
//! | [`StaticBuffer`] | an array of its own | no | no |
//! | [`ScatteredWriter`] | buffers of your [`Delegate`], in safe code | by the next buffer | no |
//! | [`cursor::Stream`] | memory that cannot be borrowed, by your [`cursor::RawDelegate`] in unsafe code | by the next range | no |
//!
//! The types take messages one after the other, can be reused without allocating, and have a
//! parameter for the generated writer that they return: `new` makes one of untyped messages, and
//! `HeapBuffer::<OrderWriter>::default()`, or `over` a vector with capacity, or
//! `SliceBuffer::<OrderWriter>::typed(…)` one of typed ones. The two functions take a single,
//! untyped message. The generator also makes owned messages (values with fields, for configuration
//! and requests); see [`Owned`].
//!
//! # Pages
//!
#![cfg_attr(any(doc, doctest), doc = "- [`wire_tricks`]: redundant varints, and lengths that come later.")]
//! - [`cursor`]: the writer, and the invariants that keep its unsafe code sound.
//! - [`view`], [`Index`]: reading of messages.
//! - [`framing`]: whole messages from a stream in pieces.
//! - [`service`]: descriptions of services, for RPC libraries.
//!
//! # What it costs
//!
//! `cargo xtask bench protozero` in the repository measures it beside prost, quick-protobuf,
//! micropb, buffa, rust-protobuf and a bare copy of the same bytes. Because each field is encoded
//! in place, a call site is larger than one that stores a value for later. The feature `compact`
//! makes call sites smaller and fields slower.
//!
//! # Features
//!
//! | feature | default | |
//! | --- | --- | --- |
//! | `alloc` | yes | sinks on the heap, owned messages, framing, nesting deeper than [`cursor::INLINE_DEPTH`] |
//! | `compact` | no | call sites of some 25 bytes per field instead of 300, at up to twice the time |
//!
//! # Limits
//!
//! Nested messages of up to 2^28 − 1 bytes ([`wire::MAX_MESSAGE_LENGTH`]); root messages have no
//! limit. Field numbers of 1 to 2^29 − 1 ([`wire::MAX_FIELD_ID`]). Groups are neither written nor
//! read. Strings are bytes that are meant as text: nothing checks that they are UTF-8. The rules
//! are those of `docs/spec/protozero.md` in the repository.

#![no_std]
#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::std_instead_of_core,
        clippy::std_instead_of_alloc,
        clippy::alloc_instead_of_core,
        clippy::print_stdout,
        clippy::print_stderr,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )
)]
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
mod lookup;
#[cfg(feature = "alloc")]
mod owned;
mod packed;
mod repeated;
#[cfg(feature = "alloc")]
mod scattered_buffer;
#[cfg(feature = "alloc")]
pub mod service;
pub mod view;
pub mod wire;
#[cfg(any(doc, doctest))]
#[doc = include_str!("../docs/wire-tricks.md")]
pub mod wire_tricks {}

pub use cursor::fixed::{BufferFull, SliceBuffer, StaticBuffer, encode_into};
#[cfg(feature = "alloc")]
pub use cursor::heap::{HeapBuffer, append_to};
pub use cursor::message::Message;
pub use cursor::scattered::{Delegate, Filled, ScatteredWriter};
pub use cursor::writer::Writer;
pub use decode::{DecodeError, Field, Fields, Value};
pub use index::{Index, MAX_INDEXED_ID, MAX_SLOTS, Schema};
#[doc(hidden)]
pub use index::{Slot, Slots, slots, table, table_len};
#[cfg(feature = "alloc")]
pub use owned::*;
pub use packed::Packed;
#[doc(hidden)]
pub use repeated::Elements;
pub use repeated::{Messages, Repeated, kind};
#[cfg(feature = "alloc")]
pub use scattered_buffer::ScatteredBuffer;
pub use view::{Lookup, Scan, UnknownFields, View};
