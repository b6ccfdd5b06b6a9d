//! [`Filter`]: the interpreter, which removes everything from a message that is not allowed.
//!
//! It reads the fields once, with a stack of the open nested messages. For each field it looks up
//! the action, and writes, enters or skips the field. At the end of a nested message it fills in
//! the length, in as many bytes as the *old* length needs. This is possible because the new length
//! is not larger, and a varint can be padded. So the output is never longer than the input.
//!
//! Upstream's interpreter is a state machine over single bytes that collects errors until the end
//! of a message. This one reads from slices and stops at the first error. The output is the same,
//! because an error empties it.

use std::sync::Arc;

use esatto_protozero::wire::{self, WireType};

use crate::bytecode::{Action, MAX_FIELD, MessageId, Program, SemanticType};
use crate::input::Input;
use crate::strings::{Outcome, StringFilter};
use crate::{Error, Usage};

/// Interpreter that filters one message after the other.
///
/// It keeps only its stack between messages.
#[derive(Clone, Debug)]
pub struct Filter {
    program: Arc<Program>,
    root: MessageId,
    strings: Arc<StringFilter>,
    open: Vec<Frame>,
    usage: Option<Usage>,
    strings_given_up: u64,
    /// Steps left of [`MAX_STEPS_PER_MESSAGE`] for the message that is being filtered.
    steps_left: u64,
    /// Steps that the string rules have cost so far.
    steps: u64,
}

/// Nested message that is being read.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Position in the input at which it ends.
    end: usize,
    /// Position in the output at which its content begins, after its length.
    start: usize,
    /// Number of bytes of the length.
    length_size: usize,
    message: MessageId,
    field: u32,
}

/// Largest number of steps that the string rules may make for one message, beyond a constant for
/// each byte and rule. A step takes some nanoseconds. Backtracking and repeated searches cost
/// steps. When they are used up, strings that need more are overwritten as a whole and counted
/// ([`Filter::strings_given_up`]).
const MAX_STEPS_PER_MESSAGE: u64 = 1 << 24;

/// Largest number of stack frames that are kept for the next message.
const KEPT_FRAMES: usize = 256;

impl Filter {
    /// Makes a filter that starts with the first message of `program` and redacts no strings.
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

    /// Makes a filter for messages at `path` in the first message: `[1]` for those in its field 1.
    ///
    /// # Errors
    ///
    /// [`Error::Root`] if a step is not allowed or not a nested message.
    pub fn with_root(mut self, path: &[u32]) -> Result<Self, Error> {
        self.root = self.program.message_at(path)?;
        Ok(self)
    }

    /// Adds string rules.
    #[must_use]
    pub fn with_strings(mut self, strings: impl Into<Arc<StringFilter>>) -> Self {
        self.strings = strings.into();
        self
    }

    /// Counts the fields that the filter meets. This is slow.
    #[must_use]
    pub fn with_usage(mut self) -> Self {
        self.usage = Some(Usage::default());
        self
    }

    /// Returns the counts, if they were requested.
    #[must_use]
    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_ref()
    }

    /// Returns how many strings were overwritten as a whole because a regular expression took too
    /// long ([`Outcome::GaveUp`]).
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

    /// Returns an upper bound of the steps that the string rules of this filter have cost so far. A
    /// step takes some nanoseconds. A program that filters for several clients in turn can charge
    /// each turn with the difference.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Filters the message in `pieces`, and replaces the content of `out` with the result.
    ///
    /// The result is no longer than the message. `out` grows at most once, to that length. The
    /// stack needs 40 bytes per level.
    ///
    /// An empty message is valid (upstream counts it as malformed).
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the message, or a nested message that is entered, is not valid.
    /// `out` is then empty.
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
            // If the number has more than 32 bits, the low ones count.
            let field = ((tag >> 3) & 0xffff_ffff) as u32;
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
                        // There is no field 0 that could be skipped: reading continues with what
                        // would be its content.
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
        // The root's own field is 0, which does not exist.
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
        out.push((value & 0x7f) as u8);
        return 1;
    }
    let mut bytes = [0; wire::MAX_VARINT_SIZE];
    let size = wire::encode_varint(value, &mut bytes);
    out.extend_from_slice(&bytes[..size]);
    size
}

/// Writes the length of the bytes since `frame.start`, padded to the reserved bytes.
#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
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
