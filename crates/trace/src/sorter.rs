//! Sorter of records by time, in bounded memory. The sorted records can be read several times.
//!
//! Records are kept as bytes. If they take more than the limit, the sorted records are written to a
//! temporary file as a *run*, and all runs are merged when the records are read back. All sorters
//! of a trace write into one file, so that a trace of any size takes one descriptor.

use core::cell::OnceCell;
use core::cmp::Reverse;
use core::ops::Range;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::rc::Rc;

/// Bytes of records that are kept in memory before they are written to a temporary file.
pub const SORT_MEMORY: usize = 4 << 20;
/// Bits of a position that hold its queue.
const QUEUE_SHIFT: u32 = 48;
/// Bytes of an entry in a run before its record: time, queue and length.
const RUN_HEADER: usize = 8 + 2 + 4;
/// Bytes of a run that are read at once, and more for a longer record.
const RUN_BUFFER: usize = 1 << 16;

/// Bits of a digit of a time, and the values of one.
const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;
/// Times that differ in more digits are sorted by comparing: 2^44 ns are 5 hours.
const DIGITS_OF_TIMES: u32 = 4;
/// Fewer entries are sorted by comparing.
const MIN_FOR_DIGITS: usize = DIGITS;

/// Order of records of the same time: the lowest queue first. Records of one queue keep the order
/// in which they were added.
pub type Queue = u16;

/// A record of the sorter.
#[derive(Debug, Clone, Copy)]
struct Entry {
    ts: i64,
    /// The queue and the position of the bytes, which grows with each record.
    place: u64,
}

/// The temporary file of the sorters of a trace. It is made for the first run.
#[derive(Debug, Clone, Default)]
pub struct SpillFile(Rc<OnceCell<File>>);

impl SpillFile {
    fn file(&self) -> io::Result<&File> {
        match self.0.get() {
            Some(file) => Ok(file),
            None => {
                let file = tempfile::tempfile()?;
                Ok(self.0.get_or_init(|| file))
            }
        }
    }
}

/// Records in memory and in runs.
#[derive(Debug)]
pub struct Sorter {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Memory for the entries while they are sorted.
    sorted: Vec<Entry>,
    file: SpillFile,
    /// The places of the runs in the file.
    runs: Vec<Range<u64>>,
    limit: usize,
    failure: Option<io::Error>,
}

impl Sorter {
    /// Makes a sorter that keeps `limit` bytes of records and their places in memory. Sorting takes
    /// up to a third more.
    pub fn new(limit: usize, file: SpillFile) -> Self {
        let (entries, sorted) = (Vec::new(), Vec::new());
        Self { bytes: Vec::new(), entries, sorted, file, runs: Vec::new(), limit, failure: None }
    }

    /// Adds a record. `write` appends its bytes. If a temporary file fails, the records in memory
    /// are lost, and [`take_failure`](Self::take_failure) tells why.
    pub fn push(&mut self, ts: i64, queue: Queue, write: impl FnOnce(&mut Vec<u8>)) {
        let place = self.bytes.len();
        self.bytes.extend([0; 4]);
        write(&mut self.bytes);
        let length = u32::try_from(self.bytes.len() - place - 4).unwrap_or(u32::MAX);
        self.bytes[place..place + 4].copy_from_slice(&length.to_ne_bytes());
        self.entries.push(Entry { ts, place: u64::from(queue) << QUEUE_SHIFT | place as u64 });
        if self.bytes.len() + self.entries.len() * size_of::<Entry>() > self.limit {
            if let Err(error) = self.spill() {
                self.failure = Some(error);
            }
            self.entries.clear();
            self.bytes.clear();
        }
    }

    /// Returns the last error of the temporary file, and forgets it.
    pub fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    fn record(bytes: &[u8], entry: Entry) -> (Queue, &[u8]) {
        let queue = u16::try_from(entry.place >> QUEUE_SHIFT).unwrap_or(u16::MAX);
        let place = usize::try_from(entry.place & ((1 << QUEUE_SHIFT) - 1)).unwrap_or(usize::MAX);
        let length: [u8; 4] = bytes[place..place + 4].try_into().unwrap_or_default();
        let start = place + 4;
        (queue, &bytes[start..start + u32::from_ne_bytes(length) as usize])
    }

    fn sort(&mut self) {
        sort(&mut self.entries, &mut self.sorted);
    }

    /// Writes the records in memory to a run, at the end of the file. They stay in memory, too.
    fn spill(&mut self) -> io::Result<()> {
        self.sort();
        let mut file = self.file.file()?;
        let start = file.seek(SeekFrom::End(0))?;
        let mut out = BufWriter::with_capacity(1 << 16, file);
        for &entry in &self.entries {
            let (queue, record) = Self::record(&self.bytes, entry);
            out.write_all(&entry.ts.to_ne_bytes())?;
            out.write_all(&queue.to_ne_bytes())?;
            out.write_all(&u32::try_from(record.len()).unwrap_or(u32::MAX).to_ne_bytes())?;
            out.write_all(record)?;
        }
        out.flush()?;
        drop(out);
        self.runs.push(start..file.stream_position()?);
        Ok(())
    }

    /// Returns the records in the order of time, and of their queues and additions at one time.
    ///
    /// # Errors
    ///
    /// The temporary file cannot be read.
    pub fn into_sorted(mut self) -> io::Result<Sorted> {
        self.sort();
        let run = |place: Range<u64>| Run {
            file: self.file.clone(),
            rest: place.clone(),
            place,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            key: (0, 0),
            record: 0..0,
        };
        let runs: Vec<Run> = self.runs.into_iter().map(run).collect();
        let heap = BinaryHeap::with_capacity(runs.len());
        let mut sorted = Sorted { bytes: self.bytes, entries: self.entries, next: 0, runs, heap, taken: None };
        sorted.rewind()?;
        Ok(sorted)
    }
}

/// Sorts entries by time and place. The times of entries that are in memory together mostly differ
/// in few bits, so that sorting by digits takes a small part of the time of comparing.
fn sort(entries: &mut Vec<Entry>, sorted: &mut Vec<Entry>) {
    if entries.is_sorted_by_key(|entry| (entry.ts, entry.place)) {
        return;
    }
    let times = || entries.iter().map(|entry| entry.ts);
    let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let bits = last.abs_diff(first).checked_ilog2().map_or(0, |bit| bit + 1);
    if entries.len() < MIN_FOR_DIGITS || bits > DIGITS_OF_TIMES * DIGIT_BITS {
        entries.sort_unstable_by_key(|entry| (entry.ts, entry.place));
        return;
    }
    sorted.resize(entries.len(), Entry { ts: 0, place: 0 });
    for shift in (0..bits).step_by(DIGIT_BITS as usize) {
        #[allow(clippy::cast_possible_truncation, reason = "the lower bits")]
        let digit = |entry: &Entry| (entry.ts.abs_diff(first) >> shift) as usize % DIGITS;
        let mut places = [0_usize; DIGITS];
        entries.iter().for_each(|entry| places[digit(entry)] += 1);
        let mut next = 0;
        for place in &mut places {
            next += core::mem::replace(place, next);
        }
        for entry in &*entries {
            let place = &mut places[digit(entry)];
            sorted[*place] = *entry;
            *place += 1;
        }
        core::mem::swap(entries, sorted);
    }
    for equal in entries.chunk_by_mut(|a, b| a.ts == b.ts).filter(|equal| equal.len() > 1) {
        equal.sort_unstable_by_key(|entry| entry.place);
    }
}

/// Reader of a run.
#[derive(Debug)]
struct Run {
    file: SpillFile,
    place: Range<u64>,
    /// The part of it that has not been read.
    rest: Range<u64>,
    buffer: Vec<u8>,
    /// The part of the buffer that has been read from the file, and not yet returned.
    start: usize,
    end: usize,
    key: (i64, Queue),
    /// The place of the record in the buffer.
    record: Range<usize>,
}

impl Run {
    /// Reads the next record; false at the end.
    fn advance(&mut self) -> io::Result<bool> {
        if !self.fill(RUN_HEADER)? {
            return if self.start == self.end { Ok(false) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
        let Some(&[t0, t1, t2, t3, t4, t5, t6, t7, q0, q1, l0, l1, l2, l3]) = self.buffer[self.start..].first_chunk()
        else {
            return Ok(false);
        };
        self.key = (i64::from_ne_bytes([t0, t1, t2, t3, t4, t5, t6, t7]), u16::from_ne_bytes([q0, q1]));
        let length = u32::from_ne_bytes([l0, l1, l2, l3]) as usize;
        if !self.fill(RUN_HEADER + length)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let start = self.start + RUN_HEADER;
        self.record = start..start + length;
        self.start = self.record.end;
        Ok(true)
    }

    /// Reads until so many bytes are in the buffer; false at the end of the run.
    fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        if self.end - self.start >= bytes {
            return Ok(true);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.buffer.len() < bytes.max(RUN_BUFFER) {
            self.buffer.resize(bytes.max(RUN_BUFFER), 0);
        }
        if self.end < bytes {
            // Other runs are read from the same file.
            let mut file = self.file.file()?;
            file.seek(SeekFrom::Start(self.rest.start))?;
            let mut rest = file.take(self.rest.end - self.rest.start);
            while self.end < bytes {
                match rest.read(&mut self.buffer[self.end..]) {
                    Ok(0) => return Ok(false),
                    Ok(n) => {
                        self.end += n;
                        self.rest.start += n as u64;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(true)
    }
}

/// Reader of sorted records.
#[derive(Debug)]
pub struct Sorted {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    next: usize,
    runs: Vec<Run>,
    /// The next record of each run.
    heap: BinaryHeap<Reverse<((i64, Queue), usize)>>,
    /// The run whose record was returned last.
    taken: Option<usize>,
}

impl Sorted {
    /// Goes back to the first record.
    ///
    /// # Errors
    ///
    /// The temporary file cannot be read.
    pub fn rewind(&mut self) -> io::Result<()> {
        (self.next, self.taken) = (0, None);
        self.heap.clear();
        for (index, run) in self.runs.iter_mut().enumerate() {
            (run.start, run.end, run.rest) = (0, 0, run.place.clone());
            if run.advance()? {
                self.heap.push(Reverse((run.key, index)));
            }
        }
        Ok(())
    }

    /// Goes on to the record after the one that was returned last, if that was in a run.
    fn advance(&mut self) -> io::Result<()> {
        let Some(index) = self.taken.take() else { return Ok(()) };
        let run = &mut self.runs[index];
        let is_there = run.advance()?;
        if let Some(mut first) = self.heap.peek_mut() {
            // The run was the first of all, and mostly stays so.
            if is_there {
                *first = Reverse((run.key, index));
            } else {
                PeekMut::pop(first);
            }
        }
        Ok(())
    }

    /// Returns the time and the queue of the next record.
    ///
    /// # Errors
    ///
    /// The temporary file cannot be read.
    pub fn peek(&mut self) -> io::Result<Option<(i64, Queue)>> {
        self.advance()?;
        let memory = self.entries.get(self.next).map(|&entry| (entry.ts, Sorter::record(&self.bytes, entry).0));
        let run = self.heap.peek().map(|Reverse((key, _))| *key);
        Ok(match (memory, run) {
            // Records in memory were added last.
            (Some(memory), Some(run)) => Some(memory.min(run)),
            (memory, run) => memory.or(run),
        })
    }

    /// Returns the next record and its time.
    ///
    /// # Errors
    ///
    /// The temporary file cannot be read.
    pub fn next_record(&mut self) -> io::Result<Option<(i64, &[u8])>> {
        self.advance()?;
        let memory = self.entries.get(self.next).copied();
        if let Some(&Reverse((key, index))) = self.heap.peek() {
            let memory_key = memory.map(|entry| (entry.ts, Sorter::record(&self.bytes, entry).0));
            if memory_key.is_none_or(|memory| key <= memory) {
                self.taken = Some(index);
                let run = &self.runs[index];
                return Ok(Some((key.0, &run.buffer[run.record.clone()])));
            }
        }
        let Some(entry) = memory else { return Ok(None) };
        self.next += 1;
        Ok(Some((entry.ts, Sorter::record(&self.bytes, entry).1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(limit: usize) -> Vec<(i64, Vec<u8>)> {
        let mut sorter = Sorter::new(limit, SpillFile::default());
        for index in 0..1000_u32 {
            let ts = i64::from(index * 7919 % 101);
            let queue = u16::try_from(index % 3).unwrap();
            sorter.push(ts, queue, |bytes| bytes.extend([index.to_ne_bytes().as_slice(), &[0; 5]].concat()));
        }
        let mut sorted = sorter.into_sorted().unwrap();
        let first = all(&mut sorted);
        // The second time is begun before the first one ends.
        sorted.rewind().unwrap();
        sorted.next_record().unwrap();
        sorted.rewind().unwrap();
        assert_eq!(all(&mut sorted), first, "{limit}");
        first
    }

    fn all(sorted: &mut Sorted) -> Vec<(i64, Vec<u8>)> {
        let mut found = Vec::new();
        while let Some((ts, record)) = sorted.next_record().unwrap() {
            found.push((ts, record.to_vec()));
        }
        found
    }

    #[test]
    fn runs_give_the_same_order_as_memory() {
        let in_memory = sorted(usize::MAX);
        assert_eq!(in_memory.len(), 1000);
        assert!(in_memory.is_sorted_by_key(|(ts, _)| *ts));
        for limit in [0, 100, 5000] {
            assert_eq!(sorted(limit), in_memory, "{limit}");
        }
    }

    #[test]
    fn sorting_by_digits_and_by_comparing_give_one_order() {
        let mut random = 1_u64;
        let mut next = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random >> 20
        };
        // Bits in which times differ: none, few (so that many are equal), some, all that have
        // digits, and more.
        for bits in [0, 5, 11, 12, 30, 44] {
            for start in [0, -5_000_000_000, i64::MIN] {
                let mut entries: Vec<Entry> = (0..3 * MIN_FOR_DIGITS as u64)
                    .map(|place| {
                        let ts = start.wrapping_add_unsigned(next() & ((1 << bits) - 1));
                        Entry { ts, place: (next() % 3) << QUEUE_SHIFT | place }
                    })
                    .collect();
                let mut expected: Vec<_> = entries.iter().map(|entry| (entry.ts, entry.place)).collect();
                expected.sort();
                sort(&mut entries, &mut Vec::new());
                assert!(entries.iter().map(|entry| (entry.ts, entry.place)).eq(expected), "{bits} bits from {start}");
            }
        }
        let far = [i64::MAX, i64::MIN, 0].map(|ts| Entry { ts, place: 0 });
        let mut entries = far.repeat(MIN_FOR_DIGITS);
        sort(&mut entries, &mut Vec::new());
        assert!(entries.is_sorted_by_key(|entry| entry.ts), "64 bits");
    }

    #[test]
    fn sorters_share_a_file() {
        let file = SpillFile::default();
        let mut sorters = [0, 1].map(|_| Sorter::new(100, file.clone()));
        for index in 0..1000_u32 {
            for (number, sorter) in sorters.iter_mut().enumerate() {
                let record = [index.to_ne_bytes(), u32::try_from(number).unwrap().to_ne_bytes()].concat();
                sorter.push(i64::from(index * 7919 % 101), 0, |bytes| bytes.extend(record));
            }
        }
        let [mut one, mut other] = sorters.map(|sorter| {
            assert!(sorter.runs.len() > 10 && sorter.failure.is_none());
            sorter.into_sorted().unwrap()
        });
        let mut number = 0;
        while let Some((ts, record)) = one.next_record().unwrap() {
            let (other_ts, other_record) = other.next_record().unwrap().unwrap();
            assert_eq!((ts, &record[..4]), (other_ts, &other_record[..4]));
            assert_eq!((&record[4..], &other_record[4..]), (&0_u32.to_ne_bytes()[..], &1_u32.to_ne_bytes()[..]));
            number += 1;
        }
        assert_eq!((number, other.next_record().unwrap()), (1000, None));
    }
}
