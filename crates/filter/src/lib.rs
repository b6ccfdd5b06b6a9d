#![forbid(unsafe_code)]

mod bytecode;
#[cfg(feature = "compiler")]
mod compiler;
mod error;
mod filter;
mod input;
mod regex;
mod strings;
mod usage;

pub use bytecode::{
    Action, Builder, Bytecode, MAX_BYTECODE_SIZE, MessageId, Program, SemanticType, StringField, Version,
};
#[cfg(feature = "compiler")]
pub use compiler::{AllowList, Options};
pub use error::Error;
pub use filter::Filter;
#[cfg(feature = "regex")]
pub use regex::EcmaScript;
pub use regex::{GaveUp, Regex, RegexEngine, Span};
pub use strings::{MAX_RULES, Outcome, Policy, Rule, SemanticTypes, StringFilter};
pub use usage::Usage;
