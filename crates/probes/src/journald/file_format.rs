//! Objects of a journal file, parsed from bytes.
//!
//! The format is public: systemd, `JOURNAL_FILE_FORMAT`. All numbers are little-endian. A file
//! begins with a [`FileHeader`], then come objects. Each begins with an [`ObjectHeader`]:
//!
//! ```text
//! FileHeader ── entry_array_offset ──► ENTRY_ARRAY ── next ──► ENTRY_ARRAY ── next ──► …
//!                                       │  │  └──► ENTRY (time, boot, items) ──► DATA "MESSAGE=…"
//!                                       │  └─────► ENTRY                     └─► DATA "_PID=…"
//! ```
//!
//! Entries share data objects with the same content. A writer appends objects and then links them,
//! so a reader that follows the arrays never meets an object that is not complete. Arrays, and the
//! entries in them, are in the order of their offsets. The hash tables, which serve to find data by
//! its content, are of no use here.

/// Bytes of the header that every version of the format has.
pub(super) const FILE_HEADER_BYTES: usize = 208;
pub(super) const OBJECT_HEADER_BYTES: usize = 16;
/// Bytes of an entry array before its items.
pub(super) const ARRAY_HEADER_BYTES: usize = 24;
/// Bytes of an entry before its items.
pub(super) const ENTRY_HEADER_BYTES: usize = 64;

/// Reason why a journal file, or an object in it, cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FormatError {
    #[error("it does not begin with the signature of a journal")]
    Signature,
    #[error("it uses a newer format (flags {0:#x})")]
    UnknownFlags(u32),
    #[error("it ends at offset {0}, inside an object")]
    Truncated(u64),
    #[error("the object at offset {0} is not of the expected kind or size")]
    WrongObject(u64),
    #[error("its list of entries is out of order at offset {0}")]
    OutOfOrder(u64),
    #[error("its list of entries has too many parts")]
    TooManyArrays,
}

/// Beginning of a journal file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) file_id: u128,
    /// Identifies the journal daemon that counts `seqnum` of the entries.
    pub(crate) seqnum_id: u128,
    pub(crate) layout: Layout,
    /// Nothing is appended any more.
    pub(crate) is_archived: bool,
    pub(crate) header_bytes: u64,
    pub(crate) entries: u64,
    /// Offset of the first entry array; 0 if there is none yet.
    pub(crate) first_array: u64,
    /// CLOCK_REALTIME of the last entry in microseconds.
    pub(crate) last_realtime_us: u64,
}

/// Widths of numbers, which differ between files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Regular,
    Compact,
}

/// Flags of features that this reader knows: three compressions, keyed hashes, compact objects.
const KNOWN_INCOMPATIBLE_FLAGS: u32 = 0x1f;
const COMPACT_FLAG: u32 = 0x10;
const STATE_ARCHIVED: u8 = 2;

impl FileHeader {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let bytes: &[u8; FILE_HEADER_BYTES] = bytes.first_chunk().ok_or(FormatError::Truncated(bytes.len() as u64))?;
        if !bytes.starts_with(b"LPKSHHRH") {
            return Err(FormatError::Signature);
        }
        let flags = u32_at(bytes, 12);
        if flags & !KNOWN_INCOMPATIBLE_FLAGS != 0 {
            return Err(FormatError::UnknownFlags(flags));
        }
        Ok(Self {
            file_id: u128_at(bytes, 24),
            seqnum_id: u128_at(bytes, 72),
            layout: if flags & COMPACT_FLAG == 0 { Layout::Regular } else { Layout::Compact },
            is_archived: bytes[16] == STATE_ARCHIVED,
            header_bytes: u64_at(bytes, 88),
            entries: u64_at(bytes, 152),
            first_array: u64_at(bytes, 176),
            last_realtime_us: u64_at(bytes, 192),
        })
    }
}

impl Layout {
    /// Returns the bytes of an item of an entry array.
    pub(super) const fn array_item_bytes(self) -> usize {
        match self {
            Self::Regular => 8,
            Self::Compact => 4,
        }
    }

    /// Returns the bytes of an item of an entry. In the regular layout a hash follows the offset.
    pub(super) const fn entry_item_bytes(self) -> usize {
        match self {
            Self::Regular => 16,
            Self::Compact => 4,
        }
    }

    /// Returns the bytes of a data object before its payload.
    pub(super) const fn data_header_bytes(self) -> usize {
        match self {
            Self::Regular => 64,
            Self::Compact => 72,
        }
    }

    /// Reads an offset at the beginning of `bytes`; 0 if they are too short.
    pub(super) fn offset(self, bytes: &[u8]) -> u64 {
        match self {
            Self::Regular => bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)),
            Self::Compact => bytes.first_chunk().map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes))),
        }
    }
}

/// Kinds of objects that this reader follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Data = 1,
    Entry = 3,
    EntryArray = 6,
}

/// Beginning of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObjectHeader {
    pub(super) compression: Option<Compression>,
    /// Bytes of the whole object.
    pub(super) bytes: u64,
}

/// Compression of the payload of a data object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Xz,
    Lz4,
    Zstd,
}

impl ObjectHeader {
    /// Parses the header of the object at `offset`, which must be of this kind and have at least
    /// `min_bytes`.
    pub(super) fn parse(bytes: &[u8], offset: u64, kind: ObjectKind, min_bytes: usize) -> Result<Self, FormatError> {
        let bytes: &[u8; OBJECT_HEADER_BYTES] = bytes.first_chunk().ok_or(FormatError::Truncated(offset))?;
        let size = u64_at(bytes, 8);
        if bytes[0] != kind as u8 || size < min_bytes as u64 || size.checked_add(offset).is_none() {
            return Err(FormatError::WrongObject(offset));
        }
        let compression = match bytes[1] & 0x07 {
            0 => None,
            0x01 => Some(Compression::Xz),
            0x02 => Some(Compression::Lz4),
            0x04 => Some(Compression::Zstd),
            _ => return Err(FormatError::WrongObject(offset)),
        };
        Ok(Self { compression, bytes: size })
    }
}

/// Entry array without its items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EntryArray {
    /// Number of items, of which the last ones may not be used yet.
    pub(super) items: u64,
    /// Offset of the next array; 0 if there is none yet.
    pub(super) next: u64,
}

impl EntryArray {
    /// Parses the array at `offset`.
    pub(super) fn parse(bytes: &[u8], offset: u64, layout: Layout) -> Result<Self, FormatError> {
        let header = ObjectHeader::parse(bytes, offset, ObjectKind::EntryArray, ARRAY_HEADER_BYTES)?;
        let bytes: &[u8; ARRAY_HEADER_BYTES] = bytes.first_chunk().ok_or(FormatError::Truncated(offset))?;
        let items = (header.bytes - ARRAY_HEADER_BYTES as u64) / layout.array_item_bytes() as u64;
        let next = u64_at(bytes, 16);
        // A writer makes no empty arrays, and appends the next one.
        if items == 0 {
            return Err(FormatError::WrongObject(offset));
        }
        if next != 0 && next <= offset {
            return Err(FormatError::OutOfOrder(offset));
        }
        Ok(Self { items, next })
    }
}

/// Entry without its items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryHeader {
    pub(crate) seqnum: u64,
    pub(crate) realtime_us: u64,
    pub(crate) monotonic_us: u64,
    /// The boot whose CLOCK_MONOTONIC `monotonic_us` is.
    pub(crate) boot_id: u128,
    /// Does not depend on the file, so it identifies the content.
    pub(crate) xor_hash: u64,
    /// Bytes of the object.
    pub(crate) bytes: u64,
}

impl EntryHeader {
    /// Parses the entry at `offset`.
    pub(super) fn parse(bytes: &[u8], offset: u64) -> Result<Self, FormatError> {
        let header = ObjectHeader::parse(bytes, offset, ObjectKind::Entry, ENTRY_HEADER_BYTES)?;
        let fields: &[u8; ENTRY_HEADER_BYTES] = bytes.first_chunk().ok_or(FormatError::Truncated(offset))?;
        Ok(Self {
            seqnum: u64_at(fields, 16),
            realtime_us: u64_at(fields, 24),
            monotonic_us: u64_at(fields, 32),
            boot_id: u128_at(fields, 40),
            xor_hash: u64_at(fields, 56),
            bytes: header.bytes,
        })
    }
}

fn u32_at<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn u64_at<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Ids are kept as they are in the file. Their order of bytes does not matter, as long as it is
/// always the same.
fn u128_at<const N: usize>(bytes: &[u8; N], at: usize) -> u128 {
    bytes[at..].first_chunk().map_or(0, |bytes| u128::from_be_bytes(*bytes))
}
