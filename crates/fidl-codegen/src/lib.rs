#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

mod compile;
mod config;
mod error;
mod generate;
mod ir;
mod layout;
mod model;
mod ordinal;
mod resolve;
mod source;
mod syntax;
mod zx;

pub use crate::config::Config;
pub use crate::error::{Error, Result};

#[cfg(test)]
mod tests;
