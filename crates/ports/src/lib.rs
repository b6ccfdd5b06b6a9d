//! The services of Perfetto's tracing protocol (`docs/spec/wire-protocol.md` §8, §12, §16).
//!
//! `cargo xtask codegen` generates all code from the `.proto` files of `esatto-schema`. Each
//! service has a module: [`producer_port`] for producers, [`consumer_port`] for consumers,
//! [`relay_port`] for relays.
//!
//! # Features
//!
//! Without features, the crate has the descriptions of the services, a type for each method, and a
//! `Request` of each service. It knows no sockets then, so it is for every system.
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

/// Libraries that the generated code names.
mod runtime {
    #[cfg(any(feature = "client", feature = "server"))]
    pub(crate) use esatto_ipc::*;
    pub(crate) use esatto_protozero::service;
}

pub use esatto_protozero::service::Rpc;
pub use r#gen::*;
