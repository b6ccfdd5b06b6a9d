//! Compiler for FIDL, the interface language of Fuchsia.

#![forbid(unsafe_code)]

mod compile;
mod error;
mod layout;
mod model;
mod ordinal;
mod resolve;
mod source;
mod syntax;
mod zx;

pub use crate::error::{Error, Result};

#[cfg(test)]
mod tests;
