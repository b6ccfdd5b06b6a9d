//! The services of Perfetto's tracing protocol (`docs/spec/wire-protocol.md` §8, §12, §16).
//!
//! `cargo xtask codegen` generates all code from the `.proto` files of `esatto-schema`. Each
//! service has a module: [`producer_port`] for producers, [`consumer_port`] for consumers,
//! [`relay_port`] for relays.
//!
//! # Features
//!
//! Without features, the crate has the descriptions of the services and their methods.
//!
//! - `client`: a `Client` for each service.
//! - `server`: traits `Server` and `Handler` for each service, and what connections call them by.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

#[rustfmt::skip]
mod r#gen;

pub use r#gen::*;
