//! The interpreter: a message in, what is allowed of it out.
//!
//! One pass over the fields, with a stack of the nested messages that are open. A field is read, its action looked up, and it is
//! written, entered or skipped. When the end of a nested message is reached, its length is filled in, in as many bytes as the
//! *old* length needs: the new one is not larger, and a varint can be padded. So the output is never longer than the input.
//!
//! Upstream's interpreter is a state machine over single bytes that collects errors until the end of a message. This one reads
//! from slices and stops at the first error; what comes out is the same, for an error empties the output.

use std::sync::Arc;

use esatto_protozero::wire::{self, WireType};

use crate::bytecode::{Action, MAX_FIELD, MessageId, Program, SemanticType};
use crate::input::Input;
use crate::strings::{Outcome, StringFilter};
use crate::{Error, Usage};

/// Filters messages, one after the other.
///
/// Keeps its stack between messages, and nothing else.
#[derive(Clone, Debug)]
pub struct Filter {
    program: Arc<Program>,
    root: MessageId,
    strings: Arc<StringFilter>,
    open: Vec<Frame>,
    usage: Option<Usage>,
    strings_given_up: u64,
    /// Of [`MAX_STEPS_PER_MESSAGE`], for the message that is being filtered.
    steps_left: u64,
    /// What the string rules have cost so far.
    steps: u64,
}

/// A nested message that is being read.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Where it ends in the input.
    end: usize,
    /// Where its content begins in the output, right after its length.
    start: usize,
    /// How many bytes the length has.
    length_size: usize,
    message: MessageId,
    field: u32,
}

/// Steps that the string rules may make for one message, some nanoseconds each, beyond a constant
/// for each byte and rule: backtracking, and repeated searches. When they are used up, strings that
/// need more are overwritten as a whole, and counted ([`Filter::strings_given_up`]).
const MAX_STEPS_PER_MESSAGE: u64 = 1 << 24;

/// Frames that are kept for the next message, if one was nested deeper.
const KEPT_FRAMES: usize = 256;

impl Filter {
    /// A filter that starts with the first message of `program` and redacts no strings.
    #[must_use]
    pub fn new(program: impl Into<Arc<Program>>) -> Self {
        Self {
            program: program.into(),
            root: MessageId::ROOT,
            strings: Arc::default(),
            open: Vec::new(),
            usage: None,
            strings_given_up: 0,
            steps_left: 0,
            steps: 0,
        }
    }

    /// The same for messages that are found at `path` in the first one: `[1]` for those in its field 1.
    ///
    /// # Errors
    ///
    /// [`Error::Root`] if a step is not allowed or not a nested message.
    pub fn with_root(mut self, path: &[u32]) -> Result<Self, Error> {
        self.root = self.program.message_at(path)?;
        Ok(self)
    }

    /// The same with string rules.
    #[must_use]
    pub fn with_strings(mut self, strings: impl Into<Arc<StringFilter>>) -> Self {
        self.strings = strings.into();
        self
    }

    /// The same, counting the fields it meets. That is slow.
    #[must_use]
    pub fn with_usage(mut self) -> Self {
        self.usage = Some(Usage::default());
        self
    }

    /// What was counted.
    #[must_use]
    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_ref()
    }

    /// How many strings were overwritten as a whole because a regular expression took too long ([`Outcome::GaveUp`]).
    #[must_use]
    pub fn strings_given_up(&self) -> u64 {
        self.strings_given_up
    }

    /// Filters a message in one piece into a new vector.
    ///
    /// # Errors
    ///
    /// As [`filter`](Self::filter).
    pub fn filter_to_vec(&mut self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        self.filter(&[message], &mut out)?;
        Ok(out)
    }

    /// What the string rules of this filter have cost at most so far, in steps of some nanoseconds.
    /// Who filters for several in turn takes the difference for a measure of a turn.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Filters a message that lies in `pieces` and replaces the content of `out` with the result.
    ///
    /// The result is no longer than the message. `out` grows at most once, to that length; besides, memory is needed for the stack
    /// only, 40 bytes per level.
    ///
    /// An empty message is a message (upstream counts it as malformed).
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if it is no message or one of its messages is none, of those that are entered. `out` is then empty.
    pub fn filter(&mut self, pieces: &[&[u8]], out: &mut Vec<u8>) -> Result<(), Error> {
        out.clear();
        self.steps_left = MAX_STEPS_PER_MESSAGE;
        let size = pieces.iter().map(|piece| piece.len()).sum();
        out.reserve(size);
        self.open.clear();
        let mut input = Input::new(pieces);
        let done = self.run(&mut input, size, out);
        self.steps += MAX_STEPS_PER_MESSAGE - self.steps_left;
        debug_assert!(out.len() <= size, "the output is never longer than the input");
        self.open.truncate(KEPT_FRAMES);
        self.open.shrink_to(KEPT_FRAMES);
        done.ok_or_else(|| {
            out.clear();
            Error::Malformed { offset: input.position() }
        })
    }

    fn run(&mut self, input: &mut Input<'_>, size: usize, out: &mut Vec<u8>) -> Option<()> {
        let mut frame = Frame { end: size, start: 0, length_size: 0, message: self.root, field: 0 };
        loop {
            while input.position() == frame.end {
                let Some(parent) = self.open.pop() else { return Some(()) };
                fill_in_length(out, frame);
                frame = parent;
            }
            let tag = input.varint(frame.end)?;
            let wire_type = WireType::from_tag(tag)?;
            // Of a number over 32 bits, the low ones count.
            let field = (tag >> 3) as u32;
            let action = self.program.action(frame.message, field);
            match wire_type {
                WireType::Varint => {
                    let value = input.varint(frame.end)?;
                    if action == Some(Action::Pass) {
                        put_tag(out, field, wire_type);
                        put_varint(out, value);
                    }
                }
                WireType::Fixed32 => {
                    let value = input.array::<4>(frame.end)?;
                    if action == Some(Action::Pass) {
                        put_tag(out, field, wire_type);
                        out.extend_from_slice(&value);
                    }
                }
                WireType::Fixed64 => {
                    let value = input.array::<8>(frame.end)?;
                    if action == Some(Action::Pass) {
                        put_tag(out, field, wire_type);
                        out.extend_from_slice(&value);
                    }
                }
                WireType::LengthDelimited => {
                    let length = input.varint(frame.end)?;
                    let length = usize::try_from(length).ok().filter(|length| *length <= wire::MAX_MESSAGE_LENGTH)?;
                    if field == 0 {
                        // No field, so nothing that could be skipped: reading goes on with what would be its content.
                        continue;
                    }
                    if length > frame.end - input.position() {
                        return None;
                    }
                    self.count(frame, field, action.is_some());
                    if let Some(action) = action {
                        put_tag(out, field, wire_type);
                        let length_size = put_varint(out, length as u64);
                        match action {
                            Action::Enter(message) if length > 0 => {
                                self.open.push(frame);
                                let end = input.position() + length;
                                frame = Frame { end, start: out.len(), length_size, message, field };
                            }
                            Action::FilterString(semantic_type) => self.string(input, length, semantic_type, out),
                            Action::Pass | Action::Enter(_) => {
                                input.consume(length, |piece| out.extend_from_slice(piece));
                            }
                        }
                    } else {
                        input.consume(length, |_| ());
                    }
                    continue;
                }
            }
            self.count(frame, field, action.is_some());
        }
    }

    fn string(&mut self, input: &mut Input<'_>, length: usize, semantic_type: SemanticType, out: &mut Vec<u8>) {
        let start = out.len();
        input.consume(length, |piece| out.extend_from_slice(piece));
        self.steps += length as u64 * self.strings.steps_per_byte();
        let outcome = self.strings.filter_within(&mut out[start..], semantic_type, &mut self.steps_left);
        if outcome == Outcome::GaveUp {
            self.strings_given_up += 1;
        }
    }

    #[inline]
    fn count(&mut self, frame: Frame, field: u32, allowed: bool) {
        if let Some(usage) = &mut self.usage {
            count_path(usage, &self.open, frame, field, allowed);
        }
    }
}

#[cold]
#[inline(never)]
fn count_path(usage: &mut Usage, open: &[Frame], frame: Frame, field: u32, allowed: bool) {
    if field != 0 {
        // The root's own field is 0, which is none.
        let path = open.iter().chain([&frame]).map(|frame| frame.field).filter(|field| *field != 0);
        usage.count(path.chain([field]), allowed);
    }
}

#[inline]
fn put_tag(out: &mut Vec<u8>, field: u32, wire_type: WireType) {
    debug_assert!(field <= MAX_FIELD, "the loader allows no others");
    put_varint(out, wire::tag(field, wire_type).into());
}

#[inline]
fn put_varint(out: &mut Vec<u8>, value: u64) -> usize {
    if value < 0x80 {
        out.push(value as u8);
        return 1;
    }
    let mut bytes = [0; wire::MAX_VARINT_SIZE];
    let size = wire::encode_varint(value, &mut bytes);
    out.extend_from_slice(&bytes[..size]);
    size
}

/// Writes the length of what has been written since `frame.start`, padded to the bytes that were reserved.
fn fill_in_length(out: &mut [u8], frame: Frame) {
    let mut length = out.len() - frame.start;
    let bytes = &mut out[frame.start - frame.length_size..frame.start];
    if let [padded @ .., last] = bytes {
        for byte in padded {
            *byte = length as u8 | 0x80;
            length >>= 7;
        }
        *last = length as u8;
    }
}
