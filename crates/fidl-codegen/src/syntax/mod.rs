//! The syntax of `.fidl` files: text → tokens → a tree of declarations, with the place of each.
//!
//! The tree says what is written. The names in it are not looked up, and constants are not
//! evaluated.

mod attributes;
mod declarations;
mod layouts;
mod lexer;
mod old;
mod parser;
mod protocols;
mod token;
mod tree;

pub(crate) use self::parser::parse;
pub(crate) use self::tree::*;
