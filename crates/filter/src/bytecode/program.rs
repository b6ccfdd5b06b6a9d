//! [`Program`]: loaded bytecode, in which the action of a field is looked up.

use core::fmt;
use core::ops::RangeInclusive;

use crate::error::Error;
use crate::message_id::MessageId;

/// Fields below this number are found with one shift. Fields from this number on are searched.
pub(super) const NEAR: u32 = 128;

/// Loaded bytecode: the allowed fields of each message.
///
/// Immutable and compact; share it in an [`Arc`](std::sync::Arc). The default allows nothing.
///
/// Its [`Display`](fmt::Display) lists the allowed fields:
///
/// ```
/// use esatto_filter::{Builder, MessageId, Program, Version};
///
/// let mut builder = Builder::new(Version::V2);
/// builder.pass(1)?.nested(2, MessageId(1))?.end_message();
/// builder.pass_range(5..=9)?.end_message();
/// let program = Program::load(&builder.build()?.bytecode)?;
/// assert_eq!(program.to_string(), "message 0\n  1\n  2 is message 1\nmessage 1\n  5 to 9\n");
/// # Ok::<(), esatto_filter::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Program {
    /// Messages, and one more, so that the lists of each message end where those of the next begin.
    pub(super) messages: Box<[Message]>,
    /// Actions of the fields below [`NEAR`] that do not simply pass, for all messages.
    pub(super) actions: Box<[Action]>,
    /// Fields from [`NEAR`] on, for all messages.
    pub(super) ranges: Box<[Range]>,
}

/// Allowed fields of one message.
#[derive(Clone, Copy, Default)]
pub(super) struct Message {
    /// Fields 0 to 63 and 64 to 127.
    pub(super) near: [Near; 2],
    /// Index of the first range in [`Program::ranges`]. Ranges are ascending and disjoint.
    pub(super) ranges: u32,
}

/// Actions of 64 fields, one bit each.
#[derive(Clone, Copy, Default)]
pub(super) struct Near {
    /// The field passes.
    pub(super) pass: u64,
    /// The field has an action in the list. Its index is the number of set bits before this one.
    pub(super) listed: u64,
    /// Index of the first action in [`Program::actions`].
    pub(super) actions: u32,
}

#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) start: u32,
    /// Field after the last.
    pub(super) end: u32,
    pub(super) action: Action,
}

/// Semantic type of a string, by which string rules are selected. 0 is unspecified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SemanticType(pub u32);

/// Action for an allowed field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The field passes with any type. If it is a message, all its fields pass.
    Pass,
    /// The field is a message to which these rules apply.
    Enter(MessageId),
    /// The field is a string that goes through string rules.
    FilterString(SemanticType),
}

impl Program {
    /// Returns the number of messages.
    #[must_use]
    pub fn message_count(&self) -> usize {
        self.messages.len().saturating_sub(1)
    }

    fn message_ids(&self) -> impl Iterator<Item = MessageId> {
        (0..).map(MessageId).take(self.message_count())
    }

    /// Returns the action for `field` of `message`; `None` if it is not allowed.
    #[inline]
    #[must_use]
    pub fn action(&self, message: MessageId, field: u32) -> Option<Action> {
        let [message, next] = self.messages.get(message.0 as usize..)?.first_chunk::<2>()?;
        if field >= NEAR {
            return self.far_action(message.ranges as usize..next.ranges as usize, field);
        }
        let (near, bit) = (&message.near[(field / 64) as usize], 1 << (field % 64));
        if near.pass & bit != 0 {
            return Some(Action::Pass);
        }
        if near.listed & bit != 0 {
            let before = (near.listed & (bit - 1)).count_ones();
            return self.actions.get((near.actions + before) as usize).copied();
        }
        None
    }

    fn far_action(&self, ranges: core::ops::Range<usize>, field: u32) -> Option<Action> {
        let ranges = self.ranges.get(ranges)?;
        let range = ranges.get(ranges.partition_point(|range| range.end <= field))?;
        (range.start <= field).then_some(range.action)
    }

    /// Follows nested messages from the first one: `[1, 2]` leads to the message in field 2 of the
    /// message in field 1.
    ///
    /// # Errors
    ///
    /// [`Error::Root`] if a step is not allowed or not a nested message.
    pub fn message_at(&self, path: &[u32]) -> Result<MessageId, Error> {
        path.iter().try_fold(MessageId::ROOT, |message, &field| match self.action(message, field) {
            Some(Action::Enter(next)) => Ok(next),
            _ => Err(Error::Root { message, field }),
        })
    }

    /// Iterates over the allowed fields of `message` in ascending order, in ranges with the same
    /// action.
    pub fn fields(&self, message: MessageId) -> impl Iterator<Item = (RangeInclusive<u32>, Action)> + '_ {
        let index = message.0 as usize;
        let ranges = match (self.messages.get(index), self.messages.get(index + 1)) {
            (Some(message), Some(next)) => message.ranges as usize..next.ranges as usize,
            _ => 0..0,
        };
        let near = (0..NEAR).filter_map(move |field| Some((field..=field, self.action(message, field)?)));
        let far = self.ranges[ranges].iter().map(|range| (range.start..=range.end - 1, range.action));
        let mut fields = near.chain(far).peekable();
        core::iter::from_fn(move || {
            let (mut range, action) = fields.next()?;
            while let Some((next, _)) = fields.next_if(|(next, a)| *a == action && *next.start() == *range.end() + 1) {
                range = *range.start()..=*next.end();
            }
            Some((range, action))
        })
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for message in self.message_ids() {
            writeln!(f, "{message}")?;
            for (fields, action) in self.fields(message) {
                match (fields.start(), fields.end()) {
                    (first, last) if first == last => write!(f, "  {first}")?,
                    (first, last) => write!(f, "  {first} to {last}")?,
                }
                match action {
                    Action::Pass => writeln!(f)?,
                    Action::Enter(message) => writeln!(f, " is {message}")?,
                    Action::FilterString(SemanticType(0)) => writeln!(f, " is a filtered string")?,
                    Action::FilterString(SemanticType(number)) => {
                        writeln!(f, " is a filtered string of type {number}")?
                    }
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages = self.message_ids().map(|message| self.fields(message).collect::<Vec<_>>());
        f.debug_list().entries(messages).finish()
    }
}
