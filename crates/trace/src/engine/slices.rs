//! Slices on tracks: nesting and ends.

use super::stats::Stats;
use crate::string_table::Symbol;
use crate::tables::{Row, SliceRow, Tables};
use hashbrown::HashMap;

/// Duration of a slice that has not ended.
pub(crate) const PENDING: i64 = -1;
/// Open slices of a track that are looked at for an event, the innermost first. Slices may be
/// nested deeper; the trace processor gives those no parent and no end.
const MAX_SEARCHED_SLICES: usize = 512;

/// Open slices of all tracks.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    /// Open slices by track, innermost last.
    open: Vec<Vec<Row>>,
    /// Ends that closed a slice around open ones.
    pub(super) misplaced_ends: u64,
    /// Open slices that were looked at.
    pub(super) work: u64,
    /// Flows that end at the next slice of a track, by machine and number.
    awaiting: HashMap<Row, Vec<(u32, u64)>>,
    /// Those whose slice has begun.
    arrived: Vec<(u32, u64, Row)>,
}

/// A slice that begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begin {
    pub(crate) track: Row,
    pub(crate) ts: i64,
    /// [`PENDING`], or the duration.
    pub(crate) dur: i64,
    pub(crate) category: Option<Symbol>,
    pub(crate) name: Option<Symbol>,
    pub(crate) args: Option<Row>,
}

impl Slices {
    fn stack(&mut self, track: Row) -> &mut Vec<Row> {
        if self.open.len() <= track.index() {
            self.open.resize_with(track.index() + 1, Vec::new);
        }
        &mut self.open[track.index()]
    }

    pub(crate) fn top(&self, track: Row) -> Option<Row> {
        self.open.get(track.index())?.last().copied()
    }

    /// Lets a flow end at the next slice of a track.
    pub(crate) fn await_flow(&mut self, track: Row, machine: u32, id: u64) {
        self.awaiting.entry(track).or_default().push((machine, id));
    }

    /// Returns the flows whose slice has begun since the last call.
    pub(crate) fn take_arrived(&mut self) -> Vec<(u32, u64, Row)> {
        core::mem::take(&mut self.arrived)
    }

    /// Closes slices that have ended by `ts`, by the rules of the trace processor. Returns false if
    /// a whole slice of `new_dur` would end after one that contains its begin.
    pub(crate) fn expire(&mut self, tables: &mut Tables, stats: &mut Stats, track: Row, ts: i64, new_dur: i64) -> bool {
        self.work += self.open.get(track.index()).map_or(0, Vec::len).min(MAX_SEARCHED_SLICES) as u64;
        let stack = self.stack(track);
        let mut has_open = false;
        for place in (stack.len().saturating_sub(MAX_SEARCHED_SLICES)..stack.len()).rev() {
            let Some(slice) = stack.get(place).map(|slice| slice.index()) else { continue };
            let (begin, dur) = (tables.slice.ts.get(slice), tables.slice.dur.get(slice));
            if dur == PENDING {
                has_open = true;
                continue;
            }
            let end = begin.saturating_add(dur);
            if has_open {
                // Open slices inside a slice that has ended are over at its end.
                if ts > end {
                    stats.count("misplaced_end_event");
                    for inner in stack.drain(place..).skip(1) {
                        let index = inner.index();
                        if tables.slice.dur.get(index) == PENDING {
                            let dur = end.saturating_sub(tables.slice.ts.get(index));
                            tables.slice.dur.set(index, dur);
                        }
                    }
                    has_open = false;
                }
                continue;
            }
            // An instant contains instants of the same time that come after it.
            let is_same_moment = dur == 0 && new_dur == 0 && end == ts;
            if end <= ts && !is_same_moment {
                // The innermost one, as in the trace processor, even if this one is not.
                stack.pop();
            } else if new_dur > 0 && ts.saturating_add(new_dur) > end {
                return false;
            }
        }
        true
    }

    pub(crate) fn begin(&mut self, tables: &mut Tables, stats: &mut Stats, begin: Begin) -> Option<Row> {
        let Begin { track, ts, dur, category, name, args } = begin;
        if !self.expire(tables, stats, track, ts, dur) {
            stats.count("slice_drop_overlapping_complete_event");
            return None;
        }
        let stack = self.stack(track);
        let depth = u16::try_from(stack.len()).unwrap_or(u16::MAX);
        let row = tables.slice.push(SliceRow {
            ts,
            dur,
            track_id: track,
            category,
            name,
            depth,
            parent_id: stack.last().copied(),
            arg_set_id: args,
            thread_ts: None,
            thread_dur: None,
        });
        stack.push(row);
        if !self.awaiting.is_empty() {
            let flows = self.awaiting.remove(&track).unwrap_or_default();
            self.arrived.extend(flows.into_iter().map(|(machine, id)| (machine, id, row)));
        }
        Some(row)
    }

    /// Closes the innermost open slice that matches name and categories. Open slices inside it stay
    /// open until a later event of the track.
    pub(crate) fn end(
        &mut self,
        tables: &mut Tables,
        stats: &mut Stats,
        track: Row,
        ts: i64,
        name: Option<Symbol>,
        category: Option<Symbol>,
    ) -> Option<Row> {
        self.expire(tables, stats, track, ts, PENDING);
        self.work += self.open.get(track.index()).map_or(0, Vec::len).min(MAX_SEARCHED_SLICES) as u64;
        let stack = self.stack(track);
        let searched = stack.len().saturating_sub(MAX_SEARCHED_SLICES);
        let matches = |slice: &Row| {
            let index = slice.index();
            tables.slice.dur.get(index) == PENDING
                && (name.is_none() || tables.slice.name[index].is_none_or(|own| Some(own) == name))
                && (category.is_none() || tables.slice.category[index] == category)
        };
        let place = searched + stack[searched..].iter().rposition(matches)?;
        let closed = stack[place];
        let dur = ts.saturating_sub(tables.slice.ts.get(closed.index()));
        tables.slice.dur.set(closed.index(), dur);
        if place + 1 == stack.len() {
            stack.pop();
        } else {
            self.misplaced_ends += 1;
        }
        Some(closed)
    }
}
