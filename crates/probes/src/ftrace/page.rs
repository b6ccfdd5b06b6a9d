//! [`PageEvents`]: the events of a page of the ring buffer (`docs/spec/probes.md` §5).

use super::parse_status::ParseStatus;

/// Values of `type_len` that are not the length of an event in words.
const TYPE_LONG_DATA: u32 = 0;
const TYPE_PADDING: u32 = 29;
const TYPE_TIME_EXTEND: u32 = 30;
const TYPE_TIME_STAMP: u32 = 31;

/// Bits of `type_len` in the header of an event. The others are the time since the event before.
const TYPE_BITS: u32 = 5;
/// Bits of the time in the header of an event. A time that needs more has the rest in a word.
const DELTA_BITS: u32 = 27;
/// Bits of an absolute time.
const ABSOLUTE_BITS: u32 = DELTA_BITS + 32;

/// Size of the length field of long events and padding, which is a part of that length.
const LENGTH_SIZE: usize = 4;

/// Events of one page, in their order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageEvents<'p> {
    /// The rest of the payload.
    rest: &'p [u8],
    /// Time of the event before, or of the page.
    time: u64,
}

/// An event as the kernel wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawEvent<'p> {
    pub(crate) time: u64,
    /// Number of the event's format.
    pub(crate) id: u16,
    /// The fields, of which the id is the first.
    pub(crate) data: &'p [u8],
}

impl<'p> PageEvents<'p> {
    /// `timestamp` is the time of the page.
    pub(crate) const fn new(timestamp: u64, payload: &'p [u8]) -> Self {
        Self { rest: payload, time: timestamp }
    }

    /// Returns the next event, or `None` at the end of the page.
    ///
    /// # Errors
    ///
    /// The fault of the page. There are no more events after that.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<RawEvent<'p>>, ParseStatus> {
        loop {
            let Some((header, rest)) = self.rest.split_first_chunk::<4>() else { return self.end() };
            let header = u32::from_le_bytes(*header);
            self.time = self.time.wrapping_add(u64::from(header >> TYPE_BITS));
            let words = header & ((1 << TYPE_BITS) - 1);
            if words.wrapping_sub(1) < TYPE_PADDING - 1 {
                let Some((data, rest)) = rest.split_at_checked(4 * words as usize) else {
                    return self.fail(ParseStatus::EndOverflow);
                };
                self.rest = rest;
                // At least one word.
                let id = u16::from_le_bytes([data[0], data[1]]);
                return Ok(Some(RawEvent { time: self.time, id, data }));
            }
            if let Some(data) = self.special(words, header >> TYPE_BITS, rest)? {
                let Some(id) = data.first_chunk() else { return self.fail(ParseStatus::ShortEventId) };
                return Ok(Some(RawEvent { time: self.time, id: u16::from_le_bytes(*id), data }));
            }
        }
    }

    /// Handles everything that is not a short event. Returns the data of a long event.
    #[cold]
    #[inline(never)]
    fn special(&mut self, kind: u32, delta: u32, rest: &'p [u8]) -> Result<Option<&'p [u8]>, ParseStatus> {
        let word = rest.split_first_chunk::<4>().map(|(word, rest)| (u32::from_le_bytes(*word), rest));
        let Some((word, rest)) = word else {
            return self.fail(match kind {
                TYPE_LONG_DATA => ParseStatus::ShortDataLength,
                TYPE_PADDING if delta == 0 => ParseStatus::NullPadding,
                TYPE_PADDING => ParseStatus::ShortPaddingLength,
                TYPE_TIME_EXTEND => ParseStatus::ShortTimeExtend,
                _ => ParseStatus::ShortTimeStamp,
            });
        };
        match kind {
            TYPE_TIME_EXTEND => {
                self.time = self.time.wrapping_add(u64::from(word) << DELTA_BITS);
                self.rest = rest;
            }
            TYPE_TIME_STAMP => {
                let before = self.time.wrapping_sub(u64::from(delta));
                self.time = near(before, u64::from(delta) | u64::from(word) << DELTA_BITS);
                self.rest = rest;
            }
            TYPE_PADDING => {
                let len = (word as usize).checked_sub(LENGTH_SIZE);
                match len.and_then(|len| rest.get(len..)) {
                    _ if delta == 0 => return self.fail(ParseStatus::NullPadding),
                    None => return self.fail(ParseStatus::InvalidPaddingLength),
                    Some(rest) => self.rest = rest,
                }
            }
            _ => {
                let Some(len) = (word as usize).checked_sub(LENGTH_SIZE) else {
                    let is_zero = word == 0;
                    return self.fail(if is_zero {
                        ParseStatus::ZeroDataLength
                    } else {
                        ParseStatus::InvalidDataLength
                    });
                };
                let Some((data, rest)) = rest.split_at_checked(len) else {
                    return self.fail(ParseStatus::EndOverflow);
                };
                self.rest = rest;
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    #[inline]
    fn end(&mut self) -> Result<Option<RawEvent<'p>>, ParseStatus> {
        if self.rest.is_empty() { Ok(None) } else { self.fail(ParseStatus::ShortEventHeader) }
    }

    #[cold]
    fn fail<T>(&mut self, status: ParseStatus) -> Result<T, ParseStatus> {
        self.rest = &[];
        Err(status)
    }
}

/// Returns the time with the low bits `low` that is nearest to `before`. An absolute time in a page
/// has only these bits: after 18 years they begin again.
fn near(before: u64, low: u64) -> u64 {
    const TURN: u64 = 1 << ABSOLUTE_BITS;
    let time = (before & !(TURN - 1)) | low;
    if time.saturating_add(TURN / 2) < before {
        time.wrapping_add(TURN)
    } else if time > before.saturating_add(TURN / 2) && time >= TURN {
        time - TURN
    } else {
        time
    }
}
