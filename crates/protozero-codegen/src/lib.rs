//! Generates Rust from `.proto` files: zero-copy writers and readers, owned types, service stubs.
//!
//! For a message `Foo` there is a `FooWriter` (fields appended in place), a `FooReader` (a view over
//! encoded bytes) and, where asked for, a value type `Foo`; nested types and the numbers of its fields
//! live in a module `foo`. Enumerations are newtypes around their number, so that values unknown to
//! the schema pass through. A service becomes a module with its name and an enumeration of its methods.
//! All of it leans on `esatto-protozero` and nothing else. Generated text is formatted as rustfmt would
//! (with `max_width = 120` and `use_small_heuristics = "Max"`), so it can be checked in.
//!
//! From a build script:
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").unwrap());
//! let code = esatto_protozero_codegen::Config::new().root("crate::protos").compile(&["shop.proto"], &["proto"])?;
//! std::fs::write(out.join("protos.rs"), code.bundle())?;
//! # Ok(())
//! # }
//! ```
//!
//! and in the crate: `mod protos { include!(concat!(env!("OUT_DIR"), "/protos.rs")); }`.
//!
//! [`sync`] keeps checked-in code true to its `.proto` files; the program `protoc-gen-esatto` is the
//! same generator as a plugin of protoc.

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
