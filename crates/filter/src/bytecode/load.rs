//! Loading of bytecode into a [`Program`].

use super::program::{Action, Message, NEAR, Program, Range, SemanticType};
use super::{MAX_FIELD, opcode, words};
use crate::error::Error;
use crate::message_id::MessageId;

/// Semantic types have 16 bits; higher bits of the word are ignored.
const SEMANTIC_TYPE_MASK: u32 = 0xffff;

impl Program {
    /// Loads bytecode of any version.
    ///
    /// # Errors
    ///
    /// [`Error`] with the mistake and its word, if the bytecode breaks one of the rules of
    /// `docs/spec/protozero.md` §14.
    pub fn load(bytecode: &[u8]) -> Result<Self, Error> {
        Self::load_with_overlay(bytecode, &[])
    }

    /// Loads bytecode and the changes of an overlay. An empty overlay changes nothing.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load), for the bytecode and the overlay.
    pub fn load_with_overlay(bytecode: &[u8], overlay: &[u8]) -> Result<Self, Error> {
        let words = words::decode(bytecode)?;
        let overlay = if overlay.is_empty() { Vec::new() } else { changes(&words::decode(overlay)?)? };
        Loader::new(&overlay).run(&words)
    }
}

/// Triple of an overlay.
struct Change {
    message: u32,
    field: u32,
    action: Action,
}

fn changes(words: &[u32]) -> Result<Vec<Change>, Error> {
    if words.len() % 3 != 0 {
        return Err(Error::OverlaySize { words: words.len() });
    }
    let mut changes: Vec<Change> = Vec::with_capacity(words.len() / 3);
    for (word, triple) in words.chunks_exact(3).enumerate().map(|(index, triple)| (index * 3, triple)) {
        let (message, field) = (triple[0], triple[1] >> opcode::BITS);
        let action = match triple[1] & opcode::MASK {
            opcode::PASS => Action::Pass,
            opcode::STRING => Action::FilterString(SemanticType(0)),
            opcode::STRING_WITH_TYPE => Action::FilterString(SemanticType(triple[2] & SEMANTIC_TYPE_MASK)),
            opcode => return Err(Error::Opcode { word: word + 1, opcode }),
        };
        if field == 0 {
            return Err(Error::FieldZero { word: word + 1 });
        }
        if changes.last().is_some_and(|last| (last.message, last.field) >= (message, field)) {
            return Err(Error::OverlayOrder { word, message: MessageId(message), field });
        }
        changes.push(Change { message, field, action });
    }
    Ok(changes)
}

/// Reads bytecode and overlay together. Both are sorted by message and field.
struct Loader<'a> {
    overlay: &'a [Change],
    messages: Vec<Message>,
    actions: Vec<Action>,
    ranges: Vec<Range>,
    /// Message that is being read.
    message: Message,
    /// Actions of its fields below [`NEAR`], valid for the bits set in `message.near`.
    near: [Action; NEAR as usize],
    last_message: u32,
}

impl<'a> Loader<'a> {
    fn new(overlay: &'a [Change]) -> Self {
        Self {
            overlay,
            messages: Vec::new(),
            actions: Vec::new(),
            ranges: Vec::new(),
            message: Message::default(),
            near: [Action::Pass; NEAR as usize],
            last_message: 0,
        }
    }

    fn run(mut self, words: &[u32]) -> Result<Program, Error> {
        let mut ended = true;
        let mut at = 0;
        while at < words.len() {
            let (opcode, field) = (words[at] & opcode::MASK, words[at] >> opcode::BITS);
            if field == 0 && opcode != opcode::END {
                return Err(Error::FieldZero { word: at });
            }
            let operand = || words.get(at + 1).copied().ok_or(Error::Operand { word: at });
            let mut size = 2;
            match opcode {
                opcode::END => {
                    self.end_message()?;
                    size = 1;
                }
                opcode::PASS => {
                    self.field(field, Action::Pass);
                    size = 1;
                }
                opcode::PASS_RANGE => self.pass_range(field, operand()?),
                opcode::NESTED => {
                    let message = operand()?;
                    self.last_message = self.last_message.max(message);
                    self.field(field, Action::Enter(MessageId(message)));
                }
                opcode::STRING => {
                    self.field(field, Action::FilterString(SemanticType(0)));
                    size = 1;
                }
                opcode::STRING_WITH_TYPE => {
                    let semantic_type = SemanticType(operand()? & SEMANTIC_TYPE_MASK);
                    self.field(field, Action::FilterString(semantic_type));
                }
                _ => return Err(Error::Opcode { word: at, opcode }),
            }
            ended = opcode == opcode::END;
            at += size;
        }
        if !ended {
            return Err(Error::Unfinished);
        }
        if let Some(change) = self.overlay.first() {
            return Err(Error::OverlayLeft { message: MessageId(change.message) });
        }
        if self.last_message > 0 && self.last_message as usize >= self.messages.len() {
            return Err(Error::NoSuchMessage { message: MessageId(self.last_message), messages: self.messages.len() });
        }
        self.messages.push(self.start());
        Ok(Program { messages: self.messages.into(), actions: self.actions.into(), ranges: self.ranges.into() })
    }

    /// Begins a message that allows nothing yet.
    #[expect(clippy::cast_possible_truncation, reason = "there are fewer ranges than bytes in bytecode and overlay")]
    fn start(&self) -> Message {
        // There are fewer ranges, and fewer actions, than bytes in bytecode and overlay.
        Message { ranges: self.ranges.len() as u32, ..Message::default() }
    }

    /// Applies an instruction to one field. The overlay takes precedence.
    fn field(&mut self, field: u32, action: Action) {
        let action = self.overlaid_up_to(field).unwrap_or(action);
        self.allow(field, action);
    }

    /// Allows the fields that the overlay adds before `field`, and returns its action for `field`
    /// itself.
    #[expect(clippy::cast_possible_truncation, reason = "there are fewer messages than bytes in the bytecode")]
    fn overlaid_up_to(&mut self, field: u32) -> Option<Action> {
        let number = self.messages.len() as u32;
        while let [change, rest @ ..] = self.overlay {
            if change.message != number || change.field > field {
                return None;
            }
            self.overlay = rest;
            if change.field == field {
                return Some(change.action);
            }
            self.allow(change.field, change.action);
        }
        None
    }

    fn allow(&mut self, field: u32, action: Action) {
        if field >= NEAR {
            return self.ranges.push(Range { start: field, end: field + 1, action });
        }
        let (near, bit) = (&mut self.message.near[(field / 64) as usize], 1 << (field % 64));
        let (yes, no) = match action {
            Action::Pass => (&mut near.pass, &mut near.listed),
            _ => (&mut near.listed, &mut near.pass),
        };
        *yes |= bit;
        *no &= !bit;
        self.near[field as usize] = action;
    }

    /// A range may begin below [`NEAR`] and end above. Numbers that no field can have are left out,
    /// because their tags would wrap around to those of other fields.
    fn pass_range(&mut self, first: u32, count: u32) {
        let end = first.wrapping_add(count).min(MAX_FIELD + 1);
        for field in first..end.min(NEAR) {
            self.allow(field, Action::Pass);
        }
        let start = first.max(NEAR);
        if start < end {
            self.ranges.push(Range { start, end, action: Action::Pass });
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "there are fewer messages, and fewer actions, than bytes in bytecode and overlay"
    )]
    fn end_message(&mut self) -> Result<(), Error> {
        // No instruction can have this field number.
        self.overlaid_up_to(u32::MAX);
        let number = self.messages.len() as u32;
        let begin = self.message.ranges as usize;
        if let Some(pair) = self.ranges[begin..].windows(2).find(|pair| pair[1].start < pair[0].end) {
            return Err(Error::Overlap { message: MessageId(number), field: pair[1].start });
        }
        for (near, actions) in self.message.near.iter_mut().zip(self.near.chunks_exact(64)) {
            near.actions = self.actions.len() as u32;
            let listed = actions.iter().enumerate().filter(|(bit, _)| near.listed >> bit & 1 == 1);
            self.actions.extend(listed.map(|(_, action)| *action));
        }
        self.messages.push(self.message);
        self.message = self.start();
        Ok(())
    }
}
