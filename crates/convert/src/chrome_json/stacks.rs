//! Slices of a thread as the trace processor nests them.

use super::event::hash_of;

/// Open slices of a thread; further ones are dropped, as in the trace processor.
const MAX_OPEN_SLICES: usize = 512;

/// A slice that may contain later ones.
#[derive(Debug, Clone)]
pub(super) struct Open {
    /// The number of its event.
    pub(super) event: u64,
    pub(super) begin: i64,
    /// Its end, if that is known.
    pub(super) end: Option<i64>,
    /// The end is known from its begin, so that no event tells it.
    pub(super) needs_end: bool,
    pub(super) name: String,
    pub(super) category: String,
    /// Processor time of the thread at its begin.
    pub(super) thread_begin: Option<i64>,
    /// Processor time of the thread at its end.
    pub(super) thread_end: Option<i64>,
    key: (u64, u64),
}

impl Open {
    pub(super) fn new(event: u64, begin: i64, end: Option<i64>, name: &str, category: &str) -> Self {
        Self {
            event,
            begin,
            end,
            needs_end: end.is_some_and(|end| end > begin),
            name: name.to_owned(),
            category: category.to_owned(),
            thread_begin: None,
            thread_end: None,
            key: (hash_of(name), hash_of(category)),
        }
    }
}

/// Reason for which a slice has no place on the track of its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// It would end after a slice that contains its begin.
    Overlaps,
    TooDeep,
}

/// Open slices of a thread.
#[derive(Debug, Default)]
pub(super) struct Stack(Vec<Open>);

impl Stack {
    pub(super) fn top(&self) -> Option<u64> {
        self.0.last().map(|open| open.event)
    }

    /// Closes slices that have ended by `ts`. `ended` gets those whose end no event tells, in the
    /// order of their ends. Returns false if a slice until `new_end` would end after one that
    /// contains its begin.
    fn expire(&mut self, ts: i64, new_end: Option<i64>, ended: &mut Vec<Open>) -> bool {
        let mut has_open = false;
        for place in (0..self.0.len()).rev() {
            let Some(slice) = self.0.get(place) else { continue };
            let Some(end) = slice.end else {
                has_open = true;
                continue;
            };
            if has_open {
                // Open slices inside a slice that has ended are over at its end.
                if ts > end {
                    for mut inner in self.0.drain(place..).rev() {
                        if inner.end.is_none() {
                            inner.needs_end = true;
                            inner.thread_end = inner.thread_begin;
                        }
                        inner.end = Some(inner.end.unwrap_or(end));
                        ended.extend(Some(inner).filter(|inner| inner.needs_end));
                    }
                    has_open = false;
                }
                continue;
            }
            let is_same_moment = end == slice.begin && new_end == Some(ts) && end == ts;
            if end <= ts && !is_same_moment {
                ended.extend(self.0.pop().filter(|slice| slice.needs_end));
            } else if new_end.is_some_and(|new_end| new_end > ts && new_end > end) {
                return false;
            }
        }
        true
    }

    pub(super) fn begin(&mut self, slice: Open, ended: &mut Vec<Open>) -> Result<(), Refused> {
        if !self.expire(slice.begin, slice.end, ended) {
            return Err(Refused::Overlaps);
        }
        if self.0.len() >= MAX_OPEN_SLICES {
            return Err(Refused::TooDeep);
        }
        self.0.push(slice);
        Ok(())
    }

    /// Ends the innermost open slice that agrees. An empty name or category agrees with all.
    pub(super) fn end(&mut self, ts: i64, name: &str, category: &str, ended: &mut Vec<Open>) -> Option<Open> {
        self.expire(ts, None, ended);
        let key = (hash_of(name), hash_of(category));
        let agrees = |slice: &Open| {
            slice.end.is_none()
                && (category.is_empty() || slice.key.1 == key.1)
                && (name.is_empty() || slice.name.is_empty() || slice.key.0 == key.0)
        };
        let place = self.0.iter().rposition(agrees)?;
        let found = self.0[place].clone();
        if place + 1 == self.0.len() {
            self.0.pop();
        } else {
            self.0[place].end = Some(ts);
        }
        Some(found)
    }

    /// Closes all slices whose end is known.
    pub(super) fn finish(&mut self, ended: &mut Vec<Open>) {
        ended.extend(self.0.drain(..).rev().filter(|slice| slice.needs_end));
    }
}
