//! Rust source as text, for generators: identifiers, doc comments, lines as rustfmt writes them.
//!
//! The generators of Esatto share it. Its interface changes with them.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

mod comments;
pub mod identifiers;
mod printer;

pub use crate::comments::markdown;
pub use crate::printer::Printer;
