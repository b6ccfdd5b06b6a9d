//! Parser and printer for the protobuf text format, driven by descriptors.
//!
//! [`parse`] turns text into the binary encoding of a message; [`to_text`] prints a binary message.
//! This crate knows no schema: every name comes from a `prost_reflect` descriptor.
//!
//! The parser is made for configs that people write by hand (`docs/spec/cli.md §16`). It does not
//! stop at the first mistake. It reports every mistake with line, column and the expected form, and
//! suggests the intended name if it can:
//!
//! ```text
//! record.cfg:2:3 error: No field named "size_kbb" in proto BufferConfig; did you mean "size_kb"?
//!   size_kbb: 4096
//!   ^~~~~~~~
//! ```
//!
//! It accepts the whole text format: lists, `<…>`, single quotes, hexadecimal numbers, exponents,
//! enum numbers, extensions, `Any`. It also accepts extensions of the reference client: no colon
//! before a scalar, and a decimal point in an integer. The text may be hostile: nesting and the
//! number of reported errors are bounded, and no input panics.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

mod error;
mod lexer;
mod parser;
mod places;
mod printer;
mod scalar_encoding;
mod snippet;
mod suggestions;
mod words;

pub use error::{Error, Errors};
pub use parser::{MAX_ERRORS, MAX_NESTING, Parser, parse};
pub use places::{Place, Places};
pub use printer::to_text;
pub use snippet::Snippet;
