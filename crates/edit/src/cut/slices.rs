//! Slices that overlap an interval, found in the order of time.
//!
//! Several threads may write the begins and ends of a track, and their packets lie in the file in
//! any order. So all of them are sorted by time before they are matched, by the rules of the trace
//! processor.

use std::collections::HashMap;
use std::io;

use esatto_trace::sorter::{Sorter, SpillFile};

use super::slice_event::{Kind, SliceEvent, Track};

/// Bytes of begins and ends that are sorted in memory before they are written to a temporary file.
const SORT_MEMORY: usize = 64 << 20;

/// Open slices of a track that are remembered, as many as readers nest.
const MAX_OPEN_SLICES: usize = 512;

/// All begins and ends of a trace.
#[derive(Debug)]
pub(super) struct Slices {
    sorter: Sorter,
}

impl Default for Slices {
    fn default() -> Self {
        Self { sorter: Sorter::new(SORT_MEMORY, SpillFile::default()) }
    }
}

impl Slices {
    /// Takes an event of a packet. Packets are numbered in the order of the file.
    pub(super) fn add(&mut self, packet: u64, time: i64, event: &SliceEvent) {
        if event.kind != Kind::Whole(0) {
            self.sorter.push(time, 0, |bytes| write_record(bytes, packet, event));
        }
    }

    /// Returns why the temporary file has failed.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.sorter.take_failure()
    }

    /// Returns the numbers of the packets outside of an interval that begin or end a slice which
    /// overlaps it, in the order of the file.
    pub(super) fn overlapping(self, interval: (i64, i64)) -> io::Result<Vec<u64>> {
        let mut sorted = self.sorter.into_sorted()?;
        let mut stacks: HashMap<Track, Stack> = HashMap::new();
        let mut kept = Kept { interval, packets: Vec::new() };
        while let Some((time, record)) = sorted.next_record()? {
            let (packet, event) = read_record(record);
            let stack = stacks.entry(event.track).or_default();
            stack.add(packet, time, &event, &mut kept);
            if stack.open.is_empty() && stack.deeper == 0 {
                stacks.remove(&event.track);
            }
        }
        let open = stacks.values().flat_map(|stack| &stack.open);
        open.filter(|slice| slice.end.is_none()).for_each(|slice| kept.add(slice, None));
        kept.packets.sort_unstable();
        Ok(kept.packets)
    }
}

/// Packets of slices that overlap the interval.
#[derive(Debug)]
struct Kept {
    interval: (i64, i64),
    packets: Vec<u64>,
}

impl Kept {
    /// Takes a slice with the time and, if there is one, the packet of its end.
    fn add(&mut self, slice: &Open, end: Option<(i64, Option<u64>)>) {
        let (from, to) = self.interval;
        if slice.is_whole || slice.begin > to || end.is_some_and(|(end, _)| end < from) {
            return;
        }
        self.packets.extend((slice.begin < from).then_some(slice.packet));
        self.packets.extend(end.filter(|(end, _)| *end > to).and_then(|(_, packet)| packet));
    }
}

/// A slice on the stack of its track.
#[derive(Debug)]
struct Open {
    /// The number of the packet of its begin.
    packet: u64,
    begin: i64,
    /// Its end, if it has ended while one inside was open, or was whole from the start.
    end: Option<i64>,
    is_whole: bool,
    name: u64,
    category: u64,
}

/// Slices of a track, innermost last.
#[derive(Debug, Default)]
struct Stack {
    open: Vec<Open>,
    /// Those with a known end.
    ended: usize,
    /// Further ones inside, which are not remembered.
    deeper: usize,
}

impl Stack {
    fn add(&mut self, packet: u64, time: i64, event: &SliceEvent, kept: &mut Kept) {
        let dur = if let Kind::Whole(dur) = event.kind { dur } else { 0 };
        let is_nested = self.expire(time, dur, kept);
        match event.kind {
            Kind::End if self.deeper > 0 => self.deeper -= 1,
            Kind::End => self.end(packet, time, event, kept),
            Kind::Whole(_) if !is_nested || self.open.len() >= MAX_OPEN_SLICES => {}
            Kind::Begin if self.open.len() >= MAX_OPEN_SLICES => self.deeper += 1,
            Kind::Begin | Kind::Whole(_) => {
                let is_whole = event.kind != Kind::Begin;
                let end = is_whole.then(|| time.saturating_add(dur));
                self.ended += usize::from(is_whole);
                let SliceEvent { name, category, .. } = *event;
                self.open.push(Open { packet, begin: time, end, is_whole, name, category });
            }
        }
    }

    /// Closes slices that have ended by a time. Returns false if a whole slice of a duration would
    /// end after one that contains its begin.
    fn expire(&mut self, time: i64, dur: i64, kept: &mut Kept) -> bool {
        if self.ended == 0 {
            return true;
        }
        let mut has_open = false;
        for place in (0..self.open.len()).rev() {
            let Some(slice) = self.open.get(place) else { continue };
            let Some(end) = slice.end else {
                has_open = true;
                continue;
            };
            if has_open {
                // Open slices inside a slice that has ended are over at its end.
                if time > end {
                    for inner in self.open.drain(place..) {
                        self.ended -= usize::from(inner.end.is_some());
                        if inner.end.is_none() {
                            kept.add(&inner, Some((end, None)));
                        }
                    }
                    has_open = false;
                }
            } else if end <= time {
                let popped = self.open.pop();
                self.ended -= usize::from(popped.is_some_and(|slice| slice.end.is_some()));
            } else if dur > 0 && time.saturating_add(dur) > end {
                return false;
            }
        }
        true
    }

    /// Closes the innermost open slice that matches name and categories.
    fn end(&mut self, packet: u64, time: i64, event: &SliceEvent, kept: &mut Kept) {
        let matches = |slice: &Open| {
            slice.end.is_none()
                && (event.name == 0 || slice.name == 0 || slice.name == event.name)
                && (event.category == 0 || slice.category == event.category)
        };
        let Some(place) = self.open.iter().rposition(matches) else { return };
        kept.add(&self.open[place], Some((time, Some(packet))));
        if place + 1 == self.open.len() {
            self.open.pop();
        } else {
            self.open[place].end = Some(time);
            self.ended += 1;
        }
    }
}

/// Appends a record: numbers, without those at the end that are 0.
fn write_record(bytes: &mut Vec<u8>, packet: u64, event: &SliceEvent) {
    let (kind, dur) = match event.kind {
        Kind::Begin => (0, 0),
        Kind::End => (1, 0),
        Kind::Whole(dur) => (2, dur),
    };
    let (track, owner, id) = match event.track {
        Track::Named(machine, id) => (0, machine, id),
        Track::OfSequence(sequence) => (1, sequence, 0),
        Track::Other(machine, hash) => (2, machine, hash),
    };
    let head = u64::from(owner) << 8 | track << 4 | kind;
    let dur = u64::from_ne_bytes(dur.to_ne_bytes());
    let numbers = [head, packet, id, event.category, event.name, dur];
    let used = numbers.iter().rposition(|number| *number != 0).map_or(0, |last| last + 1);
    numbers[..used].iter().for_each(|number| bytes.extend(number.to_ne_bytes()));
}

fn read_record(record: &[u8]) -> (u64, SliceEvent) {
    let mut numbers = record.chunks_exact(8).map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap_or_default()));
    let mut next = || numbers.next().unwrap_or(0);
    let [head, packet, id, category, name, dur] = [next(), next(), next(), next(), next(), next()];
    let owner = u32::try_from(head >> 8).unwrap_or(u32::MAX);
    let track = match head >> 4 & 15 {
        0 => Track::Named(owner, id),
        1 => Track::OfSequence(owner),
        _ => Track::Other(owner, id),
    };
    let kind = match head & 15 {
        0 => Kind::Begin,
        1 => Kind::End,
        _ => Kind::Whole(i64::from_ne_bytes(dur.to_ne_bytes())),
    };
    (packet, SliceEvent { track, kind, name, category })
}
