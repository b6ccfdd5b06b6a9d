//! Sorter of records by time, in bounded memory. The sorted records can be read several times.

use core::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, SeekFrom, Write as _};

/// Bytes of records that are kept in memory before they are written to a temporary file.
pub(crate) const SORT_MEMORY: usize = 64 << 20;
/// Bytes of an entry in a temporary file before its record: time and length.
const HEADER: usize = 8 + 4;

#[derive(Debug, Clone, Copy)]
struct Entry {
    ts: i64,
    start: usize,
    end: usize,
}

/// Records in memory and in temporary files.
#[derive(Debug)]
pub(crate) struct Sorter {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    runs: Vec<File>,
    limit: usize,
}

impl Sorter {
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), entries: Vec::new(), runs: Vec::new(), limit }
    }

    pub(crate) fn push(&mut self, ts: i64, record: &[u8]) -> io::Result<()> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(record);
        self.entries.push(Entry { ts, start, end: self.bytes.len() });
        if self.bytes.len() + self.entries.len() * size_of::<Entry>() > self.limit {
            self.spill()?;
        }
        Ok(())
    }

    /// Writes the records in memory to a temporary file, in order.
    fn spill(&mut self) -> io::Result<()> {
        self.entries.sort_by_key(|entry| entry.ts);
        let mut file = BufWriter::with_capacity(1 << 16, tempfile::tempfile()?);
        for entry in self.entries.drain(..) {
            let record = &self.bytes[entry.start..entry.end];
            file.write_all(&entry.ts.to_ne_bytes())?;
            file.write_all(&u32::try_from(record.len()).map_err(io::Error::other)?.to_ne_bytes())?;
            file.write_all(record)?;
        }
        self.bytes.clear();
        self.runs.push(file.into_inner().map_err(io::IntoInnerError::into_error)?);
        Ok(())
    }

    /// Returns the records in the order of time. Those of the same time keep their order.
    pub(crate) fn into_sorted(mut self) -> io::Result<Sorted> {
        self.entries.sort_by_key(|entry| entry.ts);
        let runs = self.runs.into_iter().map(|file| Run {
            file: BufReader::with_capacity(1 << 16, file),
            ts: 0,
            record: Vec::new(),
        });
        let mut sorted = Sorted {
            bytes: self.bytes,
            entries: self.entries,
            next: 0,
            runs: runs.collect(),
            heap: BinaryHeap::new(),
            current: Vec::new(),
        };
        sorted.rewind()?;
        Ok(sorted)
    }
}

#[derive(Debug)]
struct Run {
    file: BufReader<File>,
    ts: i64,
    record: Vec<u8>,
}

impl Run {
    /// Reads the next record; false at the end.
    fn advance(&mut self) -> io::Result<bool> {
        let mut header = [0; HEADER];
        if self.file.read(&mut header[..1])? == 0 {
            return Ok(false);
        }
        self.file.read_exact(&mut header[1..])?;
        let [t0, t1, t2, t3, t4, t5, t6, t7, l0, l1, l2, l3] = header;
        self.ts = i64::from_ne_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
        self.record.resize(u32::from_ne_bytes([l0, l1, l2, l3]) as usize, 0);
        self.file.read_exact(&mut self.record)?;
        Ok(true)
    }
}

/// Reader of sorted records.
#[derive(Debug)]
pub(crate) struct Sorted {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    next: usize,
    runs: Vec<Run>,
    /// The time of the next record of each run.
    heap: BinaryHeap<Reverse<(i64, usize)>>,
    current: Vec<u8>,
}

impl Sorted {
    /// Goes back to the first record.
    pub(crate) fn rewind(&mut self) -> io::Result<()> {
        self.next = 0;
        self.heap.clear();
        for (index, run) in self.runs.iter_mut().enumerate() {
            run.file.seek(SeekFrom::Start(0))?;
            if run.advance()? {
                self.heap.push(Reverse((run.ts, index)));
            }
        }
        Ok(())
    }

    /// Returns the time of the next record.
    pub(crate) fn peek(&self) -> Option<i64> {
        let memory = self.entries.get(self.next).map(|entry| entry.ts);
        let run = self.heap.peek().map(|Reverse((ts, _))| *ts);
        memory.into_iter().chain(run).min()
    }

    /// Returns the next record and its time.
    pub(crate) fn next(&mut self) -> io::Result<Option<(i64, &[u8])>> {
        let memory = self.entries.get(self.next).copied();
        if let Some(&Reverse((ts, index))) = self.heap.peek() {
            // Records in memory were added last.
            if memory.is_none_or(|entry| ts <= entry.ts) {
                self.heap.pop();
                let run = &mut self.runs[index];
                core::mem::swap(&mut run.record, &mut self.current);
                if run.advance()? {
                    self.heap.push(Reverse((run.ts, index)));
                }
                return Ok(Some((ts, &self.current)));
            }
        }
        let Some(entry) = memory else { return Ok(None) };
        self.next += 1;
        Ok(Some((entry.ts, &self.bytes[entry.start..entry.end])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(sorted: &mut Sorted) -> Vec<(i64, Vec<u8>)> {
        let mut found = Vec::new();
        while let Some((ts, record)) = sorted.next().unwrap() {
            found.push((ts, record.to_vec()));
        }
        found
    }

    #[test]
    fn temporary_files_give_the_same_order_as_memory() {
        let sorted = |limit| {
            let mut sorter = Sorter::new(limit);
            for index in 0..1000_u32 {
                sorter.push(i64::from(index * 7919 % 101), &index.to_ne_bytes()).unwrap();
            }
            let mut sorted = sorter.into_sorted().unwrap();
            let first = all(&mut sorted);
            sorted.rewind().unwrap();
            assert_eq!(all(&mut sorted), first, "it is the same again");
            first
        };
        let in_memory = sorted(usize::MAX);
        assert_eq!(in_memory.len(), 1000);
        assert!(in_memory.is_sorted_by_key(|(ts, _)| *ts));
        for limit in [0, 100, 5000] {
            assert_eq!(sorted(limit), in_memory, "{limit}");
        }
    }
}
