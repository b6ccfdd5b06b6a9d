//! Bytecode: which fields of which messages are allowed (`docs/spec/protozero.md` §14).
//!
//! A sequence of 32-bit words, each a varint, the last a checksum over the others. An instruction is
//! `field << 3 | opcode`, some have an operand:
//!
//! | opcode | operand | meaning |
//! |---|---|---|
//! | 0 | | end of the message; the first message is number 0, the next number 1, … |
//! | 1 | | the field passes as it is |
//! | 2 | count | so many fields from this one pass as they are |
//! | 3 | message | the field is a nested message, and that message's rules apply to it |
//! | 4 | | the field is a string that goes through string rules (v2) |
//! | 5 | type | so is this, with a semantic type that rules can be limited to (v54) |
//!
//! An *overlay* adds fields to bytecode, or changes what happens to them, so that one config serves old services too: triples of
//! message, instruction and operand (0 where there is none), with a checksum of their own.

mod builder;
mod load;
mod program;
mod words;

pub use builder::{Builder, Bytecode, StringField, Version};
pub use program::{Action, MessageId, Program, SemanticType};

/// The most bytecode that is loaded, in bytes; the same for an overlay.
///
/// About forty times what an allow-list of every field of Perfetto's `Trace` takes. What is loaded takes up to 56 bytes of memory
/// per byte of bytecode in the worst case (a run of empty messages), and about 8 in practice.
pub const MAX_BYTECODE_SIZE: usize = 256 * 1024;

/// The largest number that a field can have in protobuf.
pub(crate) const MAX_FIELD: u32 = (1 << 29) - 1;

/// What an instruction word consists of.
mod opcode {
    pub(super) const BITS: u32 = 3;
    pub(super) const MASK: u32 = (1 << BITS) - 1;
    pub(super) const END: u32 = 0;
    pub(super) const PASS: u32 = 1;
    pub(super) const PASS_RANGE: u32 = 2;
    pub(super) const NESTED: u32 = 3;
    pub(super) const STRING: u32 = 4;
    pub(super) const STRING_WITH_TYPE: u32 = 5;
}
