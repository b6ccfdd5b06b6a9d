//! Slices on tracks: nesting and ends.

use super::stats::Stats;
use crate::string_table::Symbol;
use crate::tables::{Row, SliceRow, Tables};

/// Duration of a slice that has not ended.
pub(crate) const PENDING: i64 = -1;
/// Open slices of a track; further ones are dropped, as in the trace processor.
const MAX_OPEN_SLICES: usize = 512;

/// Open slices of all tracks.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    /// Open slices by track, innermost last.
    open: Vec<Vec<Row>>,
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

    /// Closes slices with known durations that have ended by `ts`.
    pub(crate) fn expire(&mut self, tables: &Tables, track: Row, ts: i64) {
        let stack = self.stack(track);
        while let Some(top) = stack.last() {
            let (begin, dur) = (tables.slice.ts[top.index()], tables.slice.dur[top.index()]);
            if dur == PENDING {
                // An open slice inside one that has ended.
                let outer = stack.iter().rposition(|slice| tables.slice.dur[slice.index()] != PENDING);
                let Some(outer) = outer else { return };
                let outer_end = tables.slice.ts[stack[outer].index()] + tables.slice.dur[stack[outer].index()];
                if ts <= outer_end {
                    return;
                }
                stack.truncate(outer);
            } else if begin.saturating_add(dur) <= ts {
                stack.pop();
            } else {
                return;
            }
        }
    }

    pub(crate) fn begin(&mut self, tables: &mut Tables, stats: &mut Stats, begin: Begin) -> Option<Row> {
        let Begin { track, ts, dur, category, name, args } = begin;
        self.expire(tables, track, ts);
        let stack = self.stack(track);
        if stack.len() >= MAX_OPEN_SLICES {
            stats.count("slice_drop_too_deep");
            return None;
        }
        let depth = u32::try_from(stack.len()).unwrap_or(u32::MAX);
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
        if dur != 0 {
            stack.push(row);
        }
        Some(row)
    }

    /// Closes the innermost open slice that matches name and categories, and those inside it.
    pub(crate) fn end(
        &mut self,
        tables: &mut Tables,
        stats: &mut Stats,
        track: Row,
        ts: i64,
        name: Option<Symbol>,
        category: Option<Symbol>,
    ) -> Option<Row> {
        self.expire(tables, track, ts);
        let stack = self.stack(track);
        let agrees = |own: Option<Symbol>, wanted: Option<Symbol>| own.is_none() || wanted.is_none() || own == wanted;
        let matches = |slice: &Row| {
            let index = slice.index();
            tables.slice.dur[index] == PENDING
                && agrees(tables.slice.name[index], name)
                && agrees(tables.slice.category[index], category)
        };
        let place = stack.iter().rposition(matches)?;
        if place + 1 < stack.len() {
            stats.count("misplaced_end_event");
        }
        let closed = stack[place];
        for slice in stack.drain(place..) {
            let dur = &mut tables.slice.dur[slice.index()];
            if *dur == PENDING {
                *dur = ts.saturating_sub(tables.slice.ts[slice.index()]);
            }
        }
        Some(closed)
    }

    /// Returns the end of the innermost slice of a track, if it is known.
    pub(super) fn known_end(&self, tables: &Tables, track: Row) -> Option<Option<i64>> {
        let top = self.top(track)?;
        let dur = tables.slice.dur[top.index()];
        Some((dur != PENDING).then(|| tables.slice.ts[top.index()].saturating_add(dur)))
    }
}
