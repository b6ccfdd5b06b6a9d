//! Bytecode: a list of the allowed fields of each message (`docs/spec/protozero.md` §14).
//!
//! Bytecode is a sequence of 32-bit words. Each is a varint, and the last is a checksum of all
//! before it. An instruction is `field << 3 | opcode`. Some have an operand:
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
//! An *overlay* adds fields to bytecode, or changes their actions, so that one config also serves
//! old services. It consists of triples of message, instruction and operand (0 if there is none),
//! and has its own checksum.

mod builder;
mod load;
mod program;
mod words;

pub use crate::message_id::MessageId;
pub use builder::{Builder, Bytecode, StringField, Version};
pub use program::{Action, Program, SemanticType};

/// Largest size of bytecode and of an overlay in bytes.
///
/// This is about forty times the size of an allow-list of every field of Perfetto's `Trace`. A
/// loaded program takes up to 56 bytes of memory per byte of bytecode in the worst case (a run of
/// empty messages), and about 8 in practice.
pub const MAX_BYTECODE_SIZE: usize = 256 * 1024;

/// Largest field number in protobuf.
pub(crate) const MAX_FIELD: u32 = (1 << 29) - 1;

/// Parts of an instruction word.
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
