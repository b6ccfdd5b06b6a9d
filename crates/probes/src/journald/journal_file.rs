//! [`JournalFile`]: reads the entries of one journal file in their order, while it may grow.

use super::bytes_at::BytesAt;
use super::data_reader::DataReader;
use super::field::Values;
use super::file_format::{
    ARRAY_HEADER_BYTES, ENTRY_HEADER_BYTES, EntryArray, EntryHeader, FILE_HEADER_BYTES, FileHeader, FormatError,
};
use super::filter::Filter;

/// Arrays that are passed to reach the end of a file. Each is usually twice as large as the one
/// before, so that real files have about 20.
const MAX_ARRAYS_PER_SEEK: usize = 1 << 16;
/// Fields of an entry that are read. journald accepts 1024 and adds its own.
const MAX_FIELDS_PER_ENTRY: usize = 2048;

/// Bytes of an entry that are read at once. Most entries are shorter.
const FIRST_READ: usize = 1024;
/// Items of an array that are read at once.
const ITEMS_PER_READ: usize = 128;

/// Position in a journal file. Entries before it are not read.
#[derive(Debug)]
pub(crate) struct JournalFile<B> {
    file: B,
    header: FileHeader,
    /// Array with the next entry; 0 before the first array.
    array_offset: u64,
    array: EntryArray,
    /// Index of the next entry in this array.
    index: u64,
    /// Number of entries before the position.
    passed: u64,
    /// Offset of the entry before the position, or 0.
    last: u64,
    /// Offsets of the next entries, the next one last.
    offsets: Vec<u64>,
    /// The entry that [`next`](Self::next) returned.
    entry: Vec<u8>,
    data: DataReader,
}

/// Reason why [`JournalFile::next`] returns no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// The entry is damaged. The position is after it.
    Entry,
    /// Later entries cannot be found.
    File(FormatError),
}

impl<B: BytesAt> JournalFile<B> {
    /// Opens a file at its first entry.
    pub(crate) fn open(file: B) -> Result<Self, FormatError> {
        let header = read_header(&file)?;
        Ok(Self {
            file,
            header,
            array_offset: 0,
            array: EntryArray::default(),
            index: 0,
            passed: 0,
            last: 0,
            offsets: Vec::new(),
            entry: Vec::new(),
            data: DataReader::default(),
        })
    }

    pub(crate) const fn header(&self) -> &FileHeader {
        &self.header
    }

    /// Looks for entries that were written since the header was read.
    pub(crate) fn refresh(&mut self) -> Result<(), FormatError> {
        self.header = read_header(&self.file)?;
        Ok(())
    }

    /// Goes after the last entry.
    pub(crate) fn skip_to_end(&mut self) -> Result<(), FormatError> {
        self.offsets.clear();
        let mut arrays = 0;
        while self.find_array()? {
            let skipped = self.items_left();
            self.index += skipped;
            self.passed += skipped;
            arrays += 1;
            if arrays > MAX_ARRAYS_PER_SEEK {
                return Err(FormatError::TooManyArrays);
            }
        }
        Ok(())
    }

    /// Goes after the next entry and returns it; nothing if it was not written yet.
    pub(crate) fn next(&mut self) -> Result<Option<EntryHeader>, ReadError> {
        if self.offsets.is_empty() && !self.read_offsets().map_err(ReadError::File)? {
            return Ok(None);
        }
        let Some(&offset) = self.offsets.last().filter(|&&offset| offset != 0) else {
            // The header is newer than the array.
            self.offsets.clear();
            return Ok(None);
        };
        if offset <= self.last {
            return Err(ReadError::File(FormatError::OutOfOrder(offset)));
        }
        self.offsets.pop();
        self.last = offset;
        self.index += 1;
        self.passed += 1;
        self.read_entry(offset).map(Some).map_err(|_| ReadError::Entry)
    }

    /// Reads the fields of the entry that [`next`](Self::next) returned. Returns whether it matches
    /// the filter; if not, the values are not complete.
    ///
    /// A damaged field is left out.
    pub(crate) fn read_values(&mut self, filter: &Filter, values: &mut Values) -> bool {
        let layout = self.header.layout;
        values.clear();
        let mut matched = filter.start();
        self.data.begin_entry();
        let items = self.entry.get(ENTRY_HEADER_BYTES..).unwrap_or_default();
        for item in items.chunks_exact(layout.entry_item_bytes()) {
            if let Some((field, value)) = self.data.read(&self.file, layout, layout.offset(item)) {
                filter.add(&mut matched, field, value);
                values.set(field, value);
            }
        }
        matched.all()
    }

    /// Returns how many fields [`read_values`](Self::read_values) decompressed.
    pub(crate) const fn decompressions(&self) -> usize {
        self.data.decompressions()
    }

    /// Reads the offsets of the next entries. Returns whether there are some.
    fn read_offsets(&mut self) -> Result<bool, FormatError> {
        if !self.find_array()? {
            return Ok(false);
        }
        let item_bytes = self.header.layout.array_item_bytes();
        let items = usize::try_from(self.items_left()).unwrap_or(usize::MAX).min(ITEMS_PER_READ);
        let mut buffer = [0; ITEMS_PER_READ * 8];
        let buffer = &mut buffer[..items * item_bytes];
        let at = self.index.checked_mul(item_bytes as u64).and_then(|at| at.checked_add(ARRAY_HEADER_BYTES as u64));
        let at = at.and_then(|at| at.checked_add(self.array_offset));
        let read = at.map_or(0, |at| self.file.read_at(at, buffer));
        let items = buffer[..read].chunks_exact(item_bytes).map(|item| self.header.layout.offset(item));
        self.offsets.extend(items.rev());
        Ok(!self.offsets.is_empty())
    }

    /// Finds the array that has the next entry. Returns false if that entry was not written yet.
    fn find_array(&mut self) -> Result<bool, FormatError> {
        if self.passed >= self.header.entries {
            return Ok(false);
        }
        if self.array_offset != 0 && self.index < self.array.items {
            return Ok(true);
        }
        let mut next = if self.array_offset == 0 { self.header.first_array } else { self.array.next };
        if next == 0 && self.array_offset != 0 {
            // It may have been linked since the array was read.
            next = self.read_array(self.array_offset)?.map_or(0, |array| array.next);
        }
        if next == 0 {
            return Ok(false);
        }
        let Some(array) = self.read_array(next)? else { return Ok(false) };
        (self.array_offset, self.array, self.index) = (next, array, 0);
        Ok(true)
    }

    /// Number of entries in the array from the position on.
    fn items_left(&self) -> u64 {
        (self.array.items - self.index).min(self.header.entries - self.passed)
    }

    /// Reads the array at `offset`; nothing if the file ends before.
    fn read_array(&self, offset: u64) -> Result<Option<EntryArray>, FormatError> {
        let mut bytes = [0; ARRAY_HEADER_BYTES];
        if self.file.read_at(offset, &mut bytes) < bytes.len() {
            return Ok(None);
        }
        EntryArray::parse(&bytes, offset, self.header.layout).map(Some)
    }

    fn read_entry(&mut self, offset: u64) -> Result<EntryHeader, FormatError> {
        self.entry.resize(FIRST_READ, 0);
        let read = self.file.read_at(offset, &mut self.entry);
        self.entry.truncate(read);
        let result = EntryHeader::parse(&self.entry, offset);
        let wanted = result.map_or(0, |header| header.bytes);
        let most = ENTRY_HEADER_BYTES + MAX_FIELDS_PER_ENTRY * self.header.layout.entry_item_bytes();
        let wanted = usize::try_from(wanted).unwrap_or(most).min(most);
        self.entry.resize(wanted, 0);
        if wanted > read {
            let rest = &mut self.entry[read..];
            if read < FIRST_READ || self.file.read_at(offset.saturating_add(read as u64), rest) < rest.len() {
                return Err(FormatError::Truncated(offset));
            }
        }
        result
    }
}

fn read_header(file: &impl BytesAt) -> Result<FileHeader, FormatError> {
    let mut bytes = [0; FILE_HEADER_BYTES];
    let read = file.read_at(0, &mut bytes);
    FileHeader::parse(&bytes[..read])
}
