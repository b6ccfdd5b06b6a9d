//! [`Builder`]: makes bytecode from instructions.

use core::ops::RangeInclusive;

use super::program::SemanticType;
use super::{MAX_FIELD, opcode, words};
use crate::error::Error;
use crate::message_id::MessageId;

/// Oldest services that must understand the bytecode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// All services: no string rules.
    V1,
    /// Services with string rules. Semantic types are in the overlay.
    #[default]
    V2,
    /// Services with semantic types. No overlay is necessary.
    V54,
}

/// Finished filter for a config.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytecode {
    /// The allow-list.
    pub bytecode: Vec<u8>,
    /// Additions for newer services; empty if there are none.
    pub overlay: Vec<u8>,
}

/// String field that goes through string rules, and its treatment by services without them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StringField {
    /// Semantic type of the string.
    pub semantic_type: SemanticType,
    /// [`Version::V1`] passes the string unfiltered, instead of dropping it.
    pub pass_in_v1: bool,
    /// [`Version::V2`] without the overlay filters the string as one of type 0, instead of dropping
    /// it. Has no meaning for a string of type 0.
    pub untyped_in_v2: bool,
}

/// Builder of bytecode. It takes message by message, and the fields of each in ascending order.
#[derive(Clone, Debug)]
pub struct Builder {
    version: Version,
    words: Vec<u32>,
    overlay: Vec<u32>,
    messages: u32,
    last_field: u32,
    last_message: u32,
}

impl Builder {
    /// Makes a builder that begins with the fields of message 0.
    #[must_use]
    pub const fn new(version: Version) -> Self {
        Self { version, words: Vec::new(), overlay: Vec::new(), messages: 0, last_field: 0, last_message: 0 }
    }

    /// Allows a field.
    ///
    /// # Errors
    ///
    /// [`Error::FieldOrder`] if the number is not above the one before, or above 2^29 − 1. This
    /// holds for all other fields too.
    pub fn pass(&mut self, field: u32) -> Result<&mut Self, Error> {
        self.field(field..=field, opcode::PASS)
    }

    /// Allows a range of fields.
    ///
    /// # Errors
    ///
    /// As [`pass`](Self::pass), or if the range is empty.
    pub fn pass_range(&mut self, fields: RangeInclusive<u32>) -> Result<&mut Self, Error> {
        let (first, last) = (*fields.start(), *fields.end());
        self.field(fields, opcode::PASS_RANGE)?.words.push(last - first + 1);
        Ok(self)
    }

    /// Applies the rules of another message to a field. That message may be defined later.
    ///
    /// # Errors
    ///
    /// As [`pass`](Self::pass).
    pub fn nested(&mut self, field: u32, message: MessageId) -> Result<&mut Self, Error> {
        self.field(field..=field, opcode::NESTED)?.words.push(message.0);
        self.last_message = self.last_message.max(message.0);
        Ok(self)
    }

    /// Applies string rules to a string field, if the version has them.
    ///
    /// # Errors
    ///
    /// As [`pass`](Self::pass).
    pub fn string(&mut self, field: u32, string: StringField) -> Result<&mut Self, Error> {
        let typed = string.semantic_type != SemanticType(0);
        match self.version {
            Version::V1 if string.pass_in_v1 => return self.pass(field),
            Version::V1 => return Ok(self),
            Version::V2 | Version::V54 if !typed => return self.field(field..=field, opcode::STRING),
            Version::V2 => {
                if string.untyped_in_v2 {
                    self.field(field..=field, opcode::STRING)?;
                } else {
                    self.number(field..=field)?;
                }
                self.overlay.extend([self.messages, word(field, opcode::STRING_WITH_TYPE), string.semantic_type.0]);
            }
            Version::V54 => {
                self.field(field..=field, opcode::STRING_WITH_TYPE)?.words.push(string.semantic_type.0);
            }
        }
        Ok(self)
    }

    /// Ends a message. The next message follows.
    pub fn end_message(&mut self) -> &mut Self {
        self.words.push(opcode::END);
        self.messages += 1;
        self.last_field = 0;
        self
    }

    /// Adds the checksums and returns the bytecode.
    ///
    /// # Errors
    ///
    /// [`Error::Unfinished`] or [`Error::NoSuchMessage`].
    pub fn build(&self) -> Result<Bytecode, Error> {
        if self.last_field != 0 || self.messages == 0 {
            return Err(Error::Unfinished);
        }
        if self.last_message >= self.messages {
            return Err(Error::NoSuchMessage {
                message: MessageId(self.last_message),
                messages: self.messages as usize,
            });
        }
        let overlay = if self.overlay.is_empty() { Vec::new() } else { words::encode(&self.overlay) };
        Ok(Bytecode { bytecode: words::encode(&self.words), overlay })
    }

    fn field(&mut self, fields: RangeInclusive<u32>, opcode: u32) -> Result<&mut Self, Error> {
        let first = *fields.start();
        self.number(fields)?;
        self.words.push(word(first, opcode));
        Ok(self)
    }

    /// Checks that the fields come after the last ones.
    fn number(&mut self, fields: RangeInclusive<u32>) -> Result<(), Error> {
        let field = *fields.start();
        if field <= self.last_field || *fields.end() > MAX_FIELD || fields.is_empty() {
            return Err(Error::FieldOrder { field });
        }
        self.last_field = *fields.end();
        Ok(())
    }
}

const fn word(field: u32, opcode: u32) -> u32 {
    field << opcode::BITS | opcode
}
