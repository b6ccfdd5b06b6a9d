//! Strips protobuf messages down to an allow-list of fields, as Perfetto's message filter does.
//!
//! A tracing service, a log shipper, a proxy: something receives messages from programs that it does not control, and only some of
//! the fields may be passed on. This crate rewrites a message in one pass, without knowing its schema and without making objects of
//! it. What is allowed is said by *bytecode*, a few kilobytes that can be put into a config and that older and newer readers
//! understand. Fields that somebody adds later are not allowed until they are listed.
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
//! **Compile.** Bytecode is seldom written by hand. An `AllowList` is made of a `.proto` file: the schema is the list, and options say
//! what is not to be in it. The command does the same: `esatto-filter compile shop.proto -r shop.Order --exclude shop.Card -o
//! shop.filter`. Both need the feature `compiler`.
//!
//! **Load.** [`Program::load`] checks bytecode and makes a compact table of it that can be shared between threads. Bytecode comes from
//! strangers: its size is bounded, and so is what is made of it.
//!
//! **Filter.** A [`Filter`] takes messages in any number of pieces. Allowed fields are written again, in their shortest form; others
//! vanish. A nested message with rules of its own is entered; one without passes as it is, including what the schema does not
//! know. What is malformed comes out empty, and with an error. The output is never longer than the input.
//!
//! **Redact.** Fields may be strings that go through rules, in order, like packets through a firewall: see [`StringFilter`]. What
//! the groups of a regular expression match is overwritten; the length stays. A string for which a rule cannot be decided within
//! bounds is overwritten as a whole.
//!
//! **Look.** [`Filter::with_usage`] counts the fields by path, those that pass and those that do not; `AllowList::field_name` has
//! their names: `list.field_name(Usage::fields(path))`. A [`Program`] and an `AllowList` print themselves.
//!
//! # Where we are stricter than the original
//!
//! Programs and outputs are the same as upstream's, byte by byte (the tests hold them against what its code produced), except that:
//!
//! - an empty message is a message, and no error;
//! - a range does not allow field numbers over 2^29 − 1, whose tags would come out as those of other fields;
//! - a string of semantic type FFFF (in its low 16 bits) is filtered, and not passed;
//! - a rule's group that matches nothing in the last round of a repetition keeps what it matched before, as ECMAScript has it and the C++
//!   library does not: more is overwritten;
//! - repeated searches look at the string as it was, with what is before the match as context.
//!
//! # Features
//!
//! `regex` (default) brings `EcmaScript`, the engine for string rules. Nearly every program that has rules wants it; one that has a
//! regular expression engine already implements [`RegexEngine`] and does without. `compiler` brings `AllowList` and the command.
//!
//! The format is specified in `docs/spec/protozero.md` §14. Nothing here knows about traces.

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
pub use regex::{EcmaScript, PatternQuota};
pub use regex::{GaveUp, Regex, RegexEngine, Span};
pub use strings::{MAX_RULES, Outcome, Policy, Rule, SemanticTypes, StringFilter};
pub use usage::Usage;
