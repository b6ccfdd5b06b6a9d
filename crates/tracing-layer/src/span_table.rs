//! Table of the open spans, found by their ids without a lock.
//!
//! The hash of a span's id names a few slots in each table. The span takes the first free one, in
//! the first table that has one. If all tables are full there, a new table is created, four times
//! as large. A table is never removed. So nothing is allocated while the number of spans does not
//! grow.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use esatto::{Begun, Flow, Lane, Timestamp};

use crate::callsite::Callsite;
use crate::field_values::Values;

/// Slots of the first table.
const FIRST_TABLE: usize = 256;
/// Number of tables, each with four times the slots of the one before: 1.4 million in all. A span
/// without a slot is not recorded.
const TABLES: usize = 7;
/// Slots of one table in which a span may lie.
const PLACES: usize = 8;

#[derive(Debug)]
pub(crate) struct Spans {
    tables: [OnceLock<Box<[Slot]>>; TABLES],
}

#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// The id of the span; 0 if the slot is free.
    id: AtomicU64,
    /// Number of handles of the span, for the subscriber.
    pub(crate) handles: AtomicU32,
    span: Mutex<Span>,
}

/// A span.
#[derive(Debug, Default)]
pub(crate) struct Span {
    /// None while the slot is free.
    pub(crate) callsite: Option<&'static Callsite>,
    pub(crate) parent: Option<u64>,
    /// Time of its creation, if it can be needed.
    pub(crate) made: Option<Timestamp>,
    /// The thread that created it.
    pub(crate) thread: u32,
    /// How often it was entered.
    pub(crate) entries: u32,
    pub(crate) values: Values,
    /// Number of values that were written with the begin of a slice.
    pub(crate) written: usize,
    /// Connects the slices of this span.
    pub(crate) flow: Option<Flow>,
    /// Leads here from a slice of the parent.
    pub(crate) link: Option<Flow>,
    pub(crate) lifetime: Option<Lifetime>,
}

/// The slice of a span's lifetime.
#[derive(Debug)]
pub(crate) struct Lifetime {
    pub(crate) lane: Lane,
    /// The sessions that have its begin.
    pub(crate) begun: Begun,
}

impl Spans {
    pub(crate) const fn new() -> Self {
        Self { tables: [const { OnceLock::new() }; TABLES] }
    }

    /// Finds a slot for a new span. Returns `None` if there are too many.
    pub(crate) fn insert(&self, id: u64) -> Option<&Slot> {
        for (index, table) in self.tables.iter().enumerate() {
            let table = table.get_or_init(|| (0..FIRST_TABLE << (2 * index)).map(|_| Slot::default()).collect());
            for slot in places(table, id) {
                let free = slot.id.load(Ordering::Relaxed) == 0;
                // Acquire: pairs with the release in `free`.
                if free && slot.id.compare_exchange(0, id, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    slot.handles.store(1, Ordering::Relaxed);
                    return Some(slot);
                }
            }
        }
        None
    }

    /// Returns the slots of all spans.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Slot> {
        let tables = self.tables.iter().map_while(OnceLock::get);
        tables.flatten().filter(|slot| slot.id.load(Ordering::Acquire) != 0)
    }

    /// The slot of a span, if it has one.
    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<&Slot> {
        let tables = self.tables.iter().map_while(OnceLock::get);
        // Relaxed: a thread gets the id from the thread that created the span, and sees its stores.
        tables.flat_map(|table| places(table, id)).find(|slot| slot.id.load(Ordering::Relaxed) == id)
    }
}

fn places(table: &[Slot], id: u64) -> &[Slot] {
    let hash = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let first = hash as usize % (table.len() / PLACES) * PLACES;
    &table[first..first + PLACES]
}

impl Slot {
    /// Locks the span, for no longer than it takes to write an event.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Span> {
        self.span.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the use of the slot by its span, which is `span`.
    pub(crate) fn free(&self, mut span: MutexGuard<'_, Span>) {
        let mut values = core::mem::take(&mut span.values);
        values.clear();
        *span = Span { values, ..Span::default() };
        drop(span);
        self.id.store(0, Ordering::Release);
    }
}

impl Span {
    /// Returns the flow of this span. Creates it at the first use.
    pub(crate) fn flow(&mut self) -> Flow {
        *self.flow.get_or_insert_with(Flow::unique)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_found_while_they_are_alive() {
        let spans = Spans::new();
        let ids = 1..=5000_u64;
        for id in ids.clone() {
            let slot = spans.insert(id).expect("there is room");
            slot.lock().entries = id as u32;
        }
        for id in ids.clone() {
            assert_eq!(spans.get(id).expect("is alive").lock().entries, id as u32);
        }
        for id in ids.clone().step_by(2) {
            let slot = spans.get(id).expect("is alive");
            slot.free(slot.lock());
        }
        for id in ids {
            assert_eq!(spans.get(id).is_some(), id % 2 == 0);
        }
        assert!(spans.get(5001).is_none());
        let made = |spans: &Spans| spans.tables.iter().filter_map(OnceLock::get).count();
        let before = made(&spans);
        for id in 10_000..12_000 {
            let slot = spans.insert(id).expect("there is room");
            assert_eq!(slot.lock().entries, 0, "nothing is left of the one before");
        }
        assert_eq!(made(&spans), before, "slots are used again");
    }
}
