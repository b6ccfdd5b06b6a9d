//! Generates Rust from `.proto` files: zero-copy writers and readers, value types, services.
//!
//! `protox` compiles the files, so no `protoc` is needed. Generated code depends on
//! `esatto-protozero` only, and on `esatto-ipc` if it has bindings of [services](#services). It
//! works without `std`, and without `alloc` if there are no value types. Parts that a program does
//! not use take no room in it.
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
//!   State state = 6;
//! }
//! enum State { STATE_OPEN = 0; STATE_PAID = 1; }
//! message Item { string name = 1; repeated sint32 sizes = 2; }
//! message Card { bytes token = 1; }
//! ```
//!
//! A build script, with this crate under `[build-dependencies]`. Instead, you can run the command
//! `esatto-protozero-codegen`, or `protoc` with the plugin `protoc-gen-esatto`; see their `--help`.
//!
//! ```no_run
//! fn main() -> Result<(), esatto_protozero_codegen::Error> {
//!     let config = esatto_protozero_codegen::Config::new().owned("shop.proto");
//!     config.compile(&["shop.proto"], &["proto"])?.write_to_out_dir("protos.rs")
//! }
//! ```
//!
//! The program, with `esatto-protozero` under `[dependencies]`:
//!
//! ```text
//! mod protos {
//!     include!(concat!(env!("OUT_DIR"), "/protos.rs"));
//! }
//! use esatto_protozero::{HeapBuffer, Owned};
//! use protos::shop::{Order, OrderReader, OrderWriter, State, order};
//!
//! // A writer appends in place: it encodes fields at their final place, in the order of the calls.
//! let mut buffer = HeapBuffer::new();
//! let mut order = OrderWriter::from(buffer.message());
//! order.number(17).state(State::Paid).notes_entry("door", "left");
//! order.items().name("shirt").sizes([38, 40]); // a nested message ends when its writer is dropped
//! order.card().token(b"\x01\x02");
//! drop(order);
//!
//! // A reader is a view: it copies nothing, and skips fields that the program does not ask for.
//! let order = OrderReader::parse(buffer.as_slice())?;
//! assert_eq!((order.number(), order.state()), (Some(17), Some(State::Paid))); // or STATE_PAID
//! assert_eq!(order.items().next().unwrap().name(), Some(&b"shirt"[..]));
//! assert_eq!(order.payment().map(|field| field.id), Some(order::field::CARD)); // order.card() counts
//!
//! // A value is for data that a program keeps, compares and passes on. Unknown fields survive.
//! let mut order = Order::decode(buffer.as_slice())?;
//! order.payment = Some(order::Payment::Voucher("hello".into()));
//! assert_eq!(Order::decode(&order.encode()), Ok(order));
//! ```
//!
//! `examples/protozero-own-schema` in the repository is a whole program; `examples/rpc-store` is
//! one with a service.
//!
//! # Generated items
//!
//! | in the schema | writer | reader | value, on request ([`Config::owned`]) |
//! |---|---|---|---|
//! | package `a.b` | module `a::b`, see [`Layout`] | | |
//! | `message Foo` | `FooWriter` | `FooReader` | `Foo` |
//! | types nested in `Foo`; numbers of its fields | module `foo`; `foo::field` | | |
//! | number, `bool` | `x(value)`, again for each of `repeated` | `Option<T>`, or an iterator | `Option<T>`, `Vec<T>` |
//! | packed | `x(values)`: an iterable of values, not references, whose iterator can be cloned; `x_begin()` for values one by one | an iterator | `Vec<T>` |
//! | `string` | `x(value)`: any `AsRef<[u8]>`, such as `&str` and `String` | `&[u8]` | `ProtoString` |
//! | `bytes` | `x(value)`: `&[u8]` | `&[u8]` | `Vec<u8>` |
//! | message | `x()` begins it | its reader | its value, in a `Box` if large or recursive |
//! | message with `[lazy = true]` | also `x_raw(bytes)`, which takes the encoded message | | |
//! | map | `x()` begins an entry; `x_entry(key, value)` unless values are messages | entries | `BTreeMap` |
//! | oneof | as its members; the last one written counts | as its members; `x()`: the field that counts | enumeration in an `Option`, see [`OneofStyle`] |
//! | enumeration | newtype around the number, so that unknown numbers pass through; a constant for each value, see [below](#enumerations) | | |
//! | extension | traits `FooWriterExt`, `FooReaderExt` in the module of its declaration | | unknown field |
//! | service | module with its name and an enumeration of its methods, or bindings, see [below](#services) | | |
//! | `[deprecated = true]` | `#[deprecated]`, see [`Config::deprecated`] | | |
//! | comment before or after | documentation | | |
//!
//! Presence is explicit everywhere, also in proto3. A field that was written is present, even with
//! the value 0. `None` stands for an absent field. Defaults of proto2 appear in the documentation,
//! and no code applies them. `required` is not enforced. Groups, weak imports and editions are
//! refused. Text that is not UTF-8 is passed on. A nested writer borrows its parent, so code that
//! writes to the outer message while the inner one is open does not compile.
//!
//! # Enumerations
//!
//! Each value of `enum State { STATE_PARKED = 0; STATE_DRIVING = 1; }` has two names:
//! `State::STATE_DRIVING`, as in the schema, and `State::Driving`, in the style of Rust. Both are
//! the same constant, and can be patterns of a `match`. The second name leaves out the name of the
//! enumeration, if the value begins with it and what follows can be a name. A value has only the
//! name of the schema
//!
//! - if the name in the style of Rust is also that of another value in the schema,
//! - if an earlier value has got it, or
//! - if it is the word `Self`.
//!
//! [`Config::rust_values`] switches the second names off.
//!
//! # Services
//!
//! With [`Config::services`], `service Store` becomes a module `store` with bindings for the RPC
//! library `esatto-ipc`:
//!
//! | item | what it is |
//! |---|---|
//! | `SERVICE` | description of the service and its methods |
//! | `method::Get` | type that stands for `rpc Get`, with the types of its messages |
//! | `Request` | enumeration of the requests, each as its reader, for services that take calls as values |
//! | `Client` | a function for each method, which returns a call to wait for, to await, or to give a callback |
//! | `Server`, `ServeAsync` | trait with an `async fn` for each method, and what a connection needs to call it |
//! | `Handler`, `Serve`, `dispatch` | trait for event loops: its functions borrow the encoded request, and may answer later |
//!
//! ```text
//! // build.rs
//! let config = Config::new().services(Services::Ipc);
//! // the client
//! let store = store::Client::new(&Channel::connect(&address, timeout)?);
//! let reply = store.get(&GetRequest { key: Some("a".into()), ..Default::default() }).wait()?;
//! // the server
//! impl store::Server for Shelf {
//!     async fn get(&self, _: &Context, request: GetRequest) -> Result<GetReply, Status> { … }
//! }
//! Server::new(store::ServeAsync::new(Shelf)).serve_blocking(&listener)?;
//! ```
//!
//! Methods may return a stream. They may not take one. Options of methods and services:
//!
//! ```text
//! import "esatto/options.proto"; // built in, see [`options_proto`]
//!
//! service Store {
//!   option (esatto.service_trace_category) = "store";            // trace all calls
//!   rpc Get(GetRequest) returns (GetReply);
//!   rpc Note(Text) returns (Empty) {
//!     option (esatto.rpc_one_way) = true;                         // no reply
//!     option (esatto.rpc_trace_category) = "";                    // except these
//!   }
//! }
//! message GetRequest { string key = 1 [(esatto.rpc_trace_value) = true]; } // record the key
//! ```
//!
//! Traced calls are slices on both sides, with arrows between them, once the program installs an
//! adapter for tracing. Without one, the options cost nothing. [`Config::rpc_trace`] leaves them
//! out.
//!
//! # Names
//!
//! Names are those of the schema. If two would be equal, or if one means something to Rust, the
//! later one gets an underscore, or is a raw identifier (`r#type`). The format is that of rustfmt
//! with `max_width = 120` and `use_small_heuristics = "Max"`. The same input always gives the same
//! code, so it can be checked in. [`sync`] compares checked-in code with its `.proto` files.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

mod accessors;
mod boxing;
mod check;
mod comments;
mod compile;
mod config;
mod context;
mod descriptors;
mod element;
mod enums;
mod error;
mod extensions;
mod field;
mod file;
mod glob;
mod messages;
mod method_names;
mod module_tree;
mod names;
mod oneofs;
mod options;
mod options_proto;
mod output;
mod plugin;
mod position;
mod rpc_bindings;
mod rpc_methods;
mod schema;
mod services;
mod sync;
mod unused_patterns;
mod values;

pub use config::{Config, Layout, OneofStyle, Services};
pub use error::Error;
pub use options::option_help;
pub use options_proto::options_proto;
pub use output::Output;
pub use plugin::run_plugin;
pub use sync::sync;
