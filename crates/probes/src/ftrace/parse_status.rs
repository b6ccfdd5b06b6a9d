//! [`ParseStatus`]: what is wrong with a page or an event.

/// Fault of a page or an event. The numbers are those of `FtraceParseStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum ParseStatus {
    /// The pipe failed.
    UnexpectedReadError = 2,
    /// The pipe gave a part of a page.
    PartialPageRead = 3,
    /// The page has no payload, or more than a page.
    InvalidPageHeader = 4,
    /// The payload ends in the header of an event.
    ShortEventHeader = 5,
    /// Padding without a length.
    NullPadding = 6,
    /// The payload ends before the length of padding.
    ShortPaddingLength = 7,
    /// Padding that is shorter than its length field or longer than the payload.
    InvalidPaddingLength = 8,
    /// The payload ends in a time extension.
    ShortTimeExtend = 9,
    /// The payload ends in an absolute time.
    ShortTimeStamp = 10,
    /// The payload ends before the length of an event.
    ShortDataLength = 11,
    /// An event with the length 0.
    ZeroDataLength = 12,
    /// An event that is shorter than its length field.
    InvalidDataLength = 13,
    /// An event without a whole id.
    ShortEventId = 14,
    /// An event that is longer than the payload.
    EndOverflow = 15,
    /// A scheduling event that is shorter than its format says.
    ShortCompactEvent = 16,
    /// Another event that is shorter than its format says, or whose fields lie outside.
    InvalidEvent = 17,
}

/// A set of statuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ParseStatuses(u32);

impl ParseStatuses {
    pub(crate) fn insert(&mut self, status: ParseStatus) {
        self.0 |= 1 << status as u8;
    }

    /// Adds all statuses of another set.
    pub(crate) fn extend(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Iterates over the numbers of `FtraceParseStatus`, in increasing order.
    pub(crate) fn numbers(self) -> impl Iterator<Item = i32> {
        (0..32).filter(move |number| self.0 & (1 << number) != 0)
    }
}
