use crate::bytecode::MessageId;

/// What is wrong with a filter, or with the message that it was given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// More bytecode than [`MAX_BYTECODE_SIZE`](crate::MAX_BYTECODE_SIZE).
    #[error("{size} bytes of bytecode, at most {max} are taken")]
    TooLong {
        /// Its size in bytes.
        size: usize,
        /// The bound.
        max: usize,
    },
    /// There is not even a checksum.
    #[error("the bytecode is empty")]
    Empty,
    /// The bytecode is not a sequence of varints.
    #[error("no varint at byte {offset} of the bytecode")]
    Varint {
        /// Where the varint begins that is cut off or too long.
        offset: usize,
    },
    /// The last word does not fit the others.
    #[error("checksum {found:#010x} of the bytecode, its words have {expected:#010x}")]
    Checksum {
        /// The last word.
        found: u32,
        /// What it should be.
        expected: u32,
    },
    /// An instruction that does not exist, or not in an overlay.
    #[error("word {word}: opcode {opcode} means nothing here")]
    Opcode {
        /// Which word, from 0.
        word: usize,
        /// The opcode.
        opcode: u32,
    },
    /// An instruction for field 0.
    #[error("word {word}: field 0 does not exist")]
    FieldZero {
        /// Which word, from 0.
        word: usize,
    },
    /// The bytecode ends before the operand of its last instruction.
    #[error("word {word}: the operand is missing")]
    Operand {
        /// The word of the instruction, from 0.
        word: usize,
    },
    /// The last message is not ended.
    #[error("the last instruction is not an end of message")]
    Unfinished,
    /// Field numbers from 128 that are allowed twice, or not in order.
    #[error("{message}: field {field} is allowed twice or not in ascending order")]
    Overlap {
        /// The message.
        message: MessageId,
        /// The first field of the range that comes too late.
        field: u32,
    },
    /// An instruction refers to a message that does not exist.
    #[error("a field is of {message}, but there are only {messages}")]
    NoSuchMessage {
        /// What is referred to.
        message: MessageId,
        /// How many there are.
        messages: usize,
    },
    /// The overlay is not a sequence of triples.
    #[error("{words} words in the overlay, not a multiple of 3")]
    OverlaySize {
        /// How many there are, without the checksum.
        words: usize,
    },
    /// The overlay is not sorted.
    #[error("word {word} of the overlay: {message}, field {field} is not after the one before")]
    OverlayOrder {
        /// The first word of the triple, from 0.
        word: usize,
        /// The message.
        message: MessageId,
        /// The field.
        field: u32,
    },
    /// The overlay is for more messages than there are.
    #[error("the overlay changes {message}, which does not exist")]
    OverlayLeft {
        /// The first message that does not exist.
        message: MessageId,
    },
    /// A step on the way to a root is not a message, or not allowed.
    #[error("field {field} of {message} is not allowed as a nested message")]
    Root {
        /// Where the step is taken.
        message: MessageId,
        /// The field that cannot be entered.
        field: u32,
    },
    /// A message that was to be filtered is not one.
    #[error("malformed message, seen at byte {offset}")]
    Malformed {
        /// Where it was noticed, in bytes from the start.
        offset: usize,
    },
    /// Fields given to the builder in an order that cannot be encoded.
    #[error("field {field} is not after the one before, or no field number")]
    FieldOrder {
        /// The field.
        field: u32,
    },
    /// A policy number that means nothing.
    #[error("unknown string policy {number}")]
    Policy {
        /// The number.
        number: u32,
    },
    /// A semantic type that rules cannot be limited to.
    #[error("semantic type {number}, rules know only 0 to 127")]
    SemanticType {
        /// The number.
        number: u32,
    },
    /// More string rules than [`MAX_RULES`](crate::MAX_RULES).
    #[error("more than {max} string rules")]
    TooManyRules {
        /// The bound.
        max: usize,
    },
    /// The patterns of one config are too large together.
    #[error("the patterns of the config are too large together: compiled, they may take {max} bytes")]
    PatternsTooLarge {
        /// The bound.
        max: usize,
    },
    /// A pattern that is no regular expression, or one that is too large.
    #[error("{reason} at byte {offset} of the pattern `{pattern}`")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Where the mistake is.
        offset: usize,
        /// What it is.
        reason: String,
    },
    /// The `.proto` files do not compile.
    #[cfg(feature = "compiler")]
    #[error("{0}")]
    Proto(#[from] protox::Error),
    /// The descriptors handed over are not consistent.
    #[cfg(feature = "compiler")]
    #[error("bad descriptors: {0}")]
    Descriptors(#[from] prost_reflect::DescriptorError),
    /// The schema has no such message.
    #[cfg(feature = "compiler")]
    #[error("there is no message `{name}`{}", suggestion.as_ref().map_or_else(String::new, |name| format!(", did you mean `{name}`?")))]
    RootMessage {
        /// Its full name.
        name: String,
        /// A name that exists and is like it.
        suggestion: Option<String>,
    },
    /// An option names a field or message that is not below the root, most likely a typing error.
    #[cfg(feature = "compiler")]
    #[error("`{0}` is neither a message nor a field below the root")]
    UnusedName(String),
    /// Only strings can go through string rules.
    #[cfg(feature = "compiler")]
    #[error("`{0}` is not a string field and cannot be filtered as one")]
    NotString(String),
}
