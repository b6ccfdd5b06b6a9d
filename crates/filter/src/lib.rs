//! Strips protobuf messages down to an allow-list of fields, as Perfetto's message filter does.
//!
//! A tracing service, a log shipper or a proxy receives messages from programs that it does not
//! control, and may pass on only some of the fields. This crate rewrites a message in one pass,
//! without its schema and without making objects of it. *Bytecode* lists the allowed fields. It has
//! a few kilobytes, fits into a config, and is understood by older and newer readers. Fields that
//! are added to the schema later are not allowed until they are listed.
//!
//! ```
//! use esatto_filter::{Builder, Filter, MessageId, Program, Version};
//!
//! // Field 1 passes. Field 2 is a message, of which fields 5 to 9 pass.
//! let mut builder = Builder::new(Version::V2);
//! builder.pass(1)?.nested(2, MessageId(1))?.end_message();
//! builder.pass_range(5..=9)?.end_message();
//! let bytecode = builder.build()?.bytecode;
//!
//! let mut filter = Filter::new(Program::load(&bytecode)?);
//! let message = b"\x08\x01\x12\x04\x28\x07\x18\x63\x1a\x06secret"; // 1: 1, 2: { 5: 7, 3: 99 }, 3: "secret"
//! assert_eq!(filter.filter_to_vec(message)?, b"\x08\x01\x12\x02\x28\x07"); // 1: 1, 2: { 5: 7 }
//! # Ok::<(), esatto_filter::Error>(())
//! ```
//!
//! # In five minutes
//!
//! **Compile.** Bytecode is seldom written by hand. An `AllowList` is made from a `.proto` file:
//! the schema is the list, and options exclude fields. The command does the same: `esatto-filter
//! compile shop.proto -r shop.Order --exclude shop.Card -o shop.filter`. Both need the feature
//! `compiler`, which is off by default: `cargo install esatto-filter --features compiler`, or with
//! `--path crates/filter` in a clone.
//!
//! **Load.** [`Program::load`] checks bytecode and makes a compact table from it that threads can
//! share. Bytecode comes from strangers, so its size is bounded, and so is the size of the table.
//!
//! **Filter.** A [`Filter`] takes messages in any number of pieces. It writes allowed fields in
//! their shortest form, and drops all other fields. It enters a nested message that has its own
//! rules. A nested message without rules passes unchanged, including fields that the schema does
//! not know. A malformed message gives an error and an empty output. The output is never longer
//! than the input.
//!
//! **Redact.** String fields may go through rules, in order, like packets through a firewall: see
//! [`StringFilter`]. The filter overwrites the text that the groups of a regular expression match,
//! and keeps the length. If a rule cannot be decided within bounds, the whole string is
//! overwritten.
//!
//! **Inspect.** [`Filter::with_usage`] counts the fields by path, both those that pass and those
//! that are dropped. `AllowList::field_name` has their names:
//! `list.field_name(Usage::fields(path))`. A [`Program`] and an `AllowList` implement `Display`.
//!
//! # Where we are stricter than the original
//!
//! Programs and outputs are the same as upstream's, byte by byte (the tests compare them with
//! results of its code), except that:
//!
//! - an empty message is valid, and no error;
//! - a range does not allow field numbers over 2^29 − 1, whose tags would become those of other
//!   fields;
//! - a string of semantic type FFFF (in its low 16 bits) is filtered, and not passed;
//! - a rule's group that matches nothing in the last round of a repetition keeps its earlier match,
//!   unlike in the C++ library, so more is overwritten;
//! - repeated searches use the original string, with the text before the match as context.
//!
//! # Features
//!
//! The feature `regex` (default) adds `EcmaScript`, the engine for string rules. Nearly every
//! program with rules needs it. A program that has another engine implements [`RegexEngine`]
//! instead. The feature `compiler` adds `AllowList` and the command.
//!
//! The format is specified in `docs/spec/protozero.md` §14. This crate knows nothing about traces.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

mod bytecode;
#[cfg(feature = "compiler")]
mod compiler;
mod error;
mod filter;
mod input;
mod message_id;
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
pub use regex::{EcmaScript, PatternQuota};
pub use regex::{GaveUp, Regex, RegexEngine, Span};
pub use strings::{MAX_RULES, Outcome, Policy, Rule, SemanticTypes, StringFilter};
pub use usage::Usage;
