//! Generates Rust from `.proto` files: zero-copy writers and readers, value types, service stubs.
//!
//! The files are compiled by `protox`, so no `protoc` is needed; generated code leans on `esatto-protozero` and nothing else, works
//! without `std` (and, but for value types, without `alloc`), and what a program does not use of it takes no room in it.
//!
//! # Five minutes
//!
//! A schema, `proto/shop.proto`:
//!
//! ```text
//! syntax = "proto3";
//! package shop;
//!
//! message Order {
//!   uint64 number = 1;
//!   repeated Item items = 2;
//!   map<string, string> notes = 3;
//!   oneof payment { string voucher = 4; Card card = 5; }
//! }
//! message Item { string name = 1; repeated sint32 sizes = 2; }
//! message Card { bytes token = 1; }
//! ```
//!
//! A build script, with this crate under `[build-dependencies]` (or run the command `esatto-protozero-codegen`, or `protoc` with the plugin
//! `protoc-gen-esatto`; both explain themselves with `--help`):
//!
//! ```no_run
//! fn main() -> Result<(), esatto_protozero_codegen::Error> {
//!     let config = esatto_protozero_codegen::Config::new().owned("shop.proto");
//!     config.compile(&["shop.proto"], &["proto"])?.write_to_out_dir("protos.rs")
//! }
//! ```
//!
//! And the program, with `esatto-protozero` under `[dependencies]`:
//!
//! ```text
//! mod protos {
//!     include!(concat!(env!("OUT_DIR"), "/protos.rs"));
//! }
//! use esatto_protozero::{HeapBuffer, Owned};
//! use protos::shop::{Order, OrderReader, OrderWriter, order};
//!
//! // A writer appends in place: fields are encoded where they stay, in the order of the calls.
//! let mut buffer = HeapBuffer::new();
//! let mut order = OrderWriter::from(buffer.message());
//! order.number(17).notes_entry("door", "left");
//! order.items().name("shirt").sizes([38, 40]); // a nested message ends when its writer is dropped
//! order.card().token(b"\x01\x02");
//! drop(order);
//!
//! // A reader is a view: nothing is copied, and what is not asked for is passed over.
//! let order = OrderReader::parse(buffer.as_slice())?;
//! assert_eq!(order.number(), Some(17));
//! assert_eq!(order.items().next().unwrap().name(), Some(&b"shirt"[..]));
//! assert_eq!(order.payment().map(|field| field.id), Some(order::field::CARD)); // so order.card() is the one that counts
//!
//! // A value is for what is kept, compared and passed on; fields it does not know survive.
//! let mut order = Order::decode(buffer.as_slice())?;
//! order.payment = Some(order::Payment::Voucher("hello".into()));
//! assert_eq!(Order::decode(&order.encode()), Ok(order));
//! ```
//!
//! `examples/protozero-own-schema` in the repository is a whole program.
//!
//! # What becomes of what
//!
//! | in the schema | writer | reader | value, where asked for ([`Config::owned`]) |
//! |---|---|---|---|
//! | package `a.b` | module `a::b`, see [`Layout`] | | |
//! | `message Foo` | `FooWriter` | `FooReader` | `Foo` |
//! | what is nested in `Foo`, numbers of its fields | module `foo`, `foo::field` | | |
//! | number, `bool` | `x(value)`, again for each of `repeated` | `Option<T>`, or an iterator | `Option<T>`, `Vec<T>` |
//! | packed | `x(values)`: whatever gives values, not references, and can be iterated over twice; `x_begin()` for values one by one | an iterator | `Vec<T>` |
//! | `string` | `x(value)`: `&str`, `&[u8]` and what holds them | `&[u8]` | `ProtoString` |
//! | `bytes` | `x(value)`: `&[u8]` | `&[u8]` | `Vec<u8>` |
//! | message | `x()` begins it | its reader | its value, in a `Box` if large or recursive |
//! | message with `[lazy = true]` | also `x_raw(bytes)`: encoded already | | |
//! | map | `x()` begins an entry; `x_entry(key, value)` unless of messages | entries | `BTreeMap` |
//! | oneof | as its members; the last one written counts | as its members; `x()`: the field of the one that counts | enumeration in an `Option`, see [`OneofStyle`] |
//! | enumeration | newtype around the number, so that unknown ones pass through | | |
//! | extension | traits `FooWriterExt`, `FooReaderExt` beside what declares it | | unknown field |
//! | service | module with its name and an enumeration of its methods | | |
//! | `[deprecated = true]` | `#[deprecated]`, see [`Config::deprecated`] | | |
//! | comment before or behind | documentation | | |
//!
//! Presence is explicit everywhere, in proto3 as well: what is written is there, though it be 0, and `None` tells what is not. Defaults of proto2
//! are shown in the documentation and applied by nobody. `required` is not enforced. Groups, weak imports and editions are
//! refused. Text that is not UTF-8 is passed on. Nested writers take the borrow of their parent, so that writing to a message while one
//! inside of it is open does not compile.
//!
//! Names are those of the schema. Where two of them would meet, or one means something to Rust, the later one gets an underscore, or is a
//! raw identifier (`r#type`). Text is formatted as rustfmt would (with `max_width = 120` and `use_small_heuristics = "Max"`) and the
//! same for the same input, so it can be checked in; [`sync`] keeps it true to its `.proto` files.

#![forbid(unsafe_code)]

mod check;
mod comments;
mod config;
mod enums;
mod error;
mod extensions;
mod generator;
mod glob;
mod index;
mod message;
mod model;
mod names;
mod oneof;
mod options;
mod output;
mod owned;
mod plugin;
mod print;
mod resolve;
mod service;
mod sync;

pub use config::{Config, Layout, OneofStyle};
pub use error::Error;
pub use options::option_help;
pub use output::Output;
pub use plugin::run_plugin;
pub use sync::sync;
