//! Servers on loopback by which browsers show Perfetto traces and drive recordings.
//!
//! ```text
//! Server ── connections, limits, the user at the other end
//!   ├─ View      Perfetto's UI (UiFiles: folder, zip, wheel) or one page, with one trace
//!   ├─ Handover  one trace, for the page of another origin to fetch once
//!   └─ Bridge    WebSocket ── the socket of a tracing service
//! ```
//!
//! A [`Server`] listens on loopback and asks a [`Site`] for the answer to each request. It is for
//! the one user who started it: it has a thread for each connection, and few of them.
//!
//! # Trust
//!
//! Every program of the machine, and every web page in the user's browser, can send requests to
//! such a server. Connections of other users are refused, whatever they send. Web pages are kept
//! out by a token in the path, and by the `Host` and `Origin` that a browser sends. Requests are
//! small and come in time, or the connection ends.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

mod bridge;
mod error;
mod handover;
mod http;
mod server;
mod token;
mod trace_source;
mod ui_files;
mod view;

pub use bridge::{Backend, Bridge, BridgeOptions, PORT as BRIDGE_PORT};
pub use error::Error;
pub use handover::{Handover, UI_ORIGIN};
pub use http::{Answer, Request, Status};
pub use server::{Activity, Server, Site};
pub use token::Token;
pub use trace_source::TraceSource;
pub use ui_files::UiFiles;
pub use view::{Content, View, private_address};
