use crate::message_id::MessageId;

/// Error in a filter, or in a message that was filtered.
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
    /// The bytecode is empty: it lacks even a checksum.
    #[error("the bytecode is empty")]
    Empty,
    /// The bytecode is not a sequence of varints.
    #[error("no varint at byte {offset} of the bytecode")]
    Varint {
        /// Offset of the varint that is cut off or too long.
        offset: usize,
    },
    /// The last word is not the checksum of the words before it.
    #[error("checksum {found:#010x} of the bytecode, its words have {expected:#010x}")]
    Checksum {
        /// The last word.
        found: u32,
        /// The checksum of the other words.
        expected: u32,
    },
    /// An instruction that does not exist, or not in an overlay.
    #[error("word {word}: opcode {opcode} is not valid here")]
    Opcode {
        /// Index of the word.
        word: usize,
        /// The opcode.
        opcode: u32,
    },
    /// An instruction for field 0.
    #[error("word {word}: field 0 does not exist")]
    FieldZero {
        /// Index of the word.
        word: usize,
    },
    /// The bytecode ends before the operand of its last instruction.
    #[error("word {word}: the operand is missing")]
    Operand {
        /// Index of the instruction's word.
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
        /// The first field of the range that is out of order.
        field: u32,
    },
    /// An instruction refers to a message that does not exist.
    #[error("a field is of {message}, but there are only {messages}")]
    NoSuchMessage {
        /// The message that the instruction names.
        message: MessageId,
        /// Number of messages.
        messages: usize,
    },
    /// The overlay is not a sequence of triples.
    #[error("{words} words in the overlay, not a multiple of 3")]
    OverlaySize {
        /// Number of words, without the checksum.
        words: usize,
    },
    /// The overlay is not sorted.
    #[error("word {word} of the overlay: {message}, field {field} is not after the one before")]
    OverlayOrder {
        /// Index of the first word of the triple.
        word: usize,
        /// The message.
        message: MessageId,
        /// The field.
        field: u32,
    },
    /// The overlay names a message that does not exist.
    #[error("the overlay changes {message}, which does not exist")]
    OverlayLeft {
        /// The first message that does not exist.
        message: MessageId,
    },
    /// A step on the path to the root is not a message, or is not allowed.
    #[error("field {field} of {message} is not allowed as a nested message")]
    Root {
        /// Message in which the step is taken.
        message: MessageId,
        /// The field that cannot be entered.
        field: u32,
    },
    /// The input is not a valid message.
    #[error("malformed message at byte {offset}")]
    Malformed {
        /// Offset at which the error was found, in bytes from the start.
        offset: usize,
    },
    /// Fields given to the builder in an order that cannot be encoded.
    #[error("field {field} is not after the one before, or no field number")]
    FieldOrder {
        /// The field.
        field: u32,
    },
    /// An unknown policy number.
    #[error("unknown string policy {number}")]
    Policy {
        /// The number.
        number: u32,
    },
    /// A semantic type to which rules cannot be limited.
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
    /// The patterns of one config together are too large.
    #[error("the patterns of the config are too large together: compiled, they may take {max} bytes")]
    PatternsTooLarge {
        /// The bound.
        max: usize,
    },
    /// A pattern that is no regular expression, or is too large.
    #[error("{reason} at byte {offset} of the pattern `{pattern}`")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Offset of the mistake.
        offset: usize,
        /// Description of the mistake.
        reason: String,
    },
    /// The `.proto` files do not compile.
    #[cfg(feature = "compiler")]
    #[error("{0}")]
    Proto(#[from] protox::Error),
    /// The given descriptors are not consistent.
    #[cfg(feature = "compiler")]
    #[error("bad descriptors: {0}")]
    Descriptors(#[from] prost_reflect::DescriptorError),
    /// The schema has no such message.
    #[cfg(feature = "compiler")]
    #[error("there is no message `{name}`{}", suggestion.as_ref().map_or_else(String::new, |name| format!(", did you mean `{name}`?")))]
    RootMessage {
        /// Its full name.
        name: String,
        /// A similar name that exists.
        suggestion: Option<String>,
    },
    /// An option names a field or message that is not below the root, most likely a typing error.
    #[cfg(feature = "compiler")]
    #[error("`{0}` is neither a message nor a field below the root")]
    UnusedName(String),
    /// The field is not a string, so string rules cannot apply to it.
    #[cfg(feature = "compiler")]
    #[error("`{0}` is not a string field and cannot be filtered as one")]
    NotString(String),
}
