//! [`DataReader`]: reads the data objects of a journal file, of which entries consist.

use super::bytes_at::BytesAt;
use super::decompress::decompress;
use super::field::Field;
use super::file_format::{FormatError, Layout, ObjectHeader, ObjectKind};

/// Longest value in the trace. journald itself cuts lines of standard output at 48 KiB.
const MAX_VALUE_BYTES: usize = 64 << 10;
/// Longest compressed object that is read. Longer ones are dumps of memory, not texts.
const MAX_COMPRESSED_BYTES: u64 = 1 << 20;
/// Bytes of a name, `=` and a value.
const MAX_PAYLOAD_BYTES: usize = Field::LONGEST_NAME + 1 + MAX_VALUE_BYTES;

/// Objects of an entry that are decompressed. Each may take as much work as 8 MiB of text; real
/// entries have a few long texts.
const MAX_DECOMPRESSIONS_PER_ENTRY: usize = 64;

/// Bytes of an object that are read at once. Most objects are shorter.
const FIRST_READ: usize = 512;

/// Slots of [`KnownData`]. A power of two.
const SLOTS: usize = 128;
/// Longest value that [`KnownData`] keeps, so that it takes at most 24 KiB per file.
const MAX_KNOWN_VALUE_BYTES: usize = 128;

/// Reads data objects. Keeps those that entries share, such as `_HOSTNAME` and `_EXE`, so that an
/// entry costs few reads.
#[derive(Debug, Default)]
pub(super) struct DataReader {
    /// The object being read.
    object: Vec<u8>,
    /// Its payload, if it was compressed.
    plain: Vec<u8>,
    known: KnownData,
    /// Objects of this entry that were decompressed.
    decompressions: usize,
}

impl DataReader {
    /// Begins an entry.
    pub(super) const fn begin_entry(&mut self) {
        self.decompressions = 0;
    }

    /// Returns how many objects of this entry were decompressed.
    pub(super) const fn decompressions(&self) -> usize {
        self.decompressions
    }

    /// Returns field and value of the object at `offset`; nothing if no trace shows the field or
    /// the object is damaged. Values that are too long are cut.
    pub(super) fn read(&mut self, file: &impl BytesAt, layout: Layout, offset: u64) -> Option<(Field, &[u8])> {
        if let Some(slot) = self.known.find(offset) {
            let (field, value) = &self.known.slots[slot].content;
            return field.map(|field| (field, value.as_slice()));
        }
        let (field, payload) =
            match load(&mut self.object, &mut self.plain, &mut self.decompressions, file, layout, offset) {
                // It may be damaged, or not there yet.
                Err(_) => return None,
                Ok(payload) => match payload.iter().take(Field::LONGEST_NAME + 1).position(|&byte| byte == b'=') {
                    None => (None, &[][..]),
                    Some(end) => (Field::of_name(&payload[..end]), &payload[end + 1..]),
                },
            };
        let value = cut(payload, MAX_VALUE_BYTES);
        self.known.keep(offset, field, value);
        field.map(|field| (field, value))
    }
}

/// Returns the beginning of an object's payload: as much as a field that a trace shows may need.
fn load<'a>(
    object: &'a mut Vec<u8>,
    plain: &'a mut Vec<u8>,
    decompressions: &mut usize,
    file: &impl BytesAt,
    layout: Layout,
    offset: u64,
) -> Result<&'a [u8], FormatError> {
    let head_bytes = layout.data_header_bytes();
    // Hardly any object is larger, so its memory is not kept.
    object.clear();
    object.shrink_to(2 * MAX_PAYLOAD_BYTES);
    object.resize(FIRST_READ, 0);
    let read = file.read_at(offset, object);
    let header = ObjectHeader::parse(&object[..read], offset, ObjectKind::Data, head_bytes)?;
    let wanted = match header.compression {
        Some(_) if header.bytes > MAX_COMPRESSED_BYTES => return Ok(&[]),
        Some(_) if *decompressions >= MAX_DECOMPRESSIONS_PER_ENTRY => return Err(FormatError::WrongObject(offset)),
        None => header.bytes.min((head_bytes + MAX_PAYLOAD_BYTES) as u64),
        Some(_) => header.bytes,
    };
    let wanted = usize::try_from(wanted).map_err(|_| FormatError::WrongObject(offset))?;
    object.truncate(wanted);
    if wanted > FIRST_READ && (header.compression.is_some() || may_be_wanted(&object[head_bytes..])) {
        object.resize(wanted, 0);
        let rest = &mut object[read..];
        if file.read_at(offset.saturating_add(read as u64), rest) < rest.len() {
            return Err(FormatError::Truncated(offset));
        }
    } else if read < object.len() {
        return Err(FormatError::Truncated(offset));
    }
    let payload = &object[head_bytes..];
    let Some(compression) = header.compression else { return Ok(payload) };
    *decompressions += 1;
    plain.clear();
    if !decompress(compression, payload, MAX_PAYLOAD_BYTES, plain) {
        return Err(FormatError::WrongObject(offset));
    }
    Ok(plain)
}

/// Returns whether the payload, of which this is the beginning, is a field that a trace shows.
fn may_be_wanted(payload: &[u8]) -> bool {
    let end = payload.iter().take(Field::LONGEST_NAME + 1).position(|&byte| byte == b'=');
    end.is_some_and(|end| Field::of_name(&payload[..end]).is_some())
}

/// Cuts a text before a character that does not fit.
fn cut(text: &[u8], max: usize) -> &[u8] {
    if text.len() <= max {
        return text;
    }
    let is_inside = |end: &usize| text[*end] & 0xc0 == 0x80;
    // A character has at most four bytes; binary data may have none.
    let end = (max - 3..=max).rev().find(|end| !is_inside(end)).unwrap_or(max);
    &text[..end]
}

/// Content of data objects, which never changes, by their offset. A new object takes the place of
/// an earlier one in its slot.
#[derive(Debug, Default)]
struct KnownData {
    /// Empty before the first object.
    slots: Vec<Slot>,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    /// 0 if the slot is free.
    offset: u64,
    /// No field if no trace shows it.
    content: (Option<Field>, Vec<u8>),
}

impl KnownData {
    fn slot_of(offset: u64) -> usize {
        // Objects are at multiples of 8. Multiplication spreads offsets that differ by powers of
        // two.
        let hash = (offset / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        usize::try_from(hash >> 57).unwrap_or(0) % SLOTS
    }

    fn find(&self, offset: u64) -> Option<usize> {
        let slot = Self::slot_of(offset);
        self.slots.get(slot).is_some_and(|known| known.offset == offset && offset != 0).then_some(slot)
    }

    fn keep(&mut self, offset: u64, field: Option<Field>, value: &[u8]) {
        // Hardly two entries have the same message.
        if field == Some(Field::Message) || value.len() > MAX_KNOWN_VALUE_BYTES && field.is_some() {
            return;
        }
        if self.slots.is_empty() {
            self.slots.resize(SLOTS, Slot::default());
        }
        let slot = &mut self.slots[Self::slot_of(offset)];
        slot.offset = offset;
        slot.content.0 = field;
        slot.content.1.clear();
        if field.is_some() {
            slot.content.1.extend_from_slice(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_before_a_character() {
        assert_eq!(cut("aä€".as_bytes(), 6), "aä€".as_bytes());
        assert_eq!(cut("aä€".as_bytes(), 5), "aä".as_bytes());
        assert_eq!(cut("aä€".as_bytes(), 4), "aä".as_bytes());
        assert_eq!(cut(&[0x80; 9], 5), [0x80; 5], "binary data");
    }
}
