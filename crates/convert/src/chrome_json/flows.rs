//! Slices at the ends of flows.

use std::collections::HashMap;

use super::event::{Event, Scope};
use super::owners::Thread;
use super::stacks::{Open, Stack};

/// Key of a flow: its id, and for the first form its category and its name.
type Key = (u64, Option<(String, String)>);

#[derive(Debug, Default)]
struct ThreadFlows {
    stack: Stack,
    /// Flows that end at the next slice.
    waiting: Vec<Key>,
}

/// Finds the slices of flows while it sees all events in the order of time.
#[derive(Debug, Default)]
pub(super) struct Binder {
    threads: HashMap<Thread, ThreadFlows>,
    /// The last slice of each flow.
    last: HashMap<Key, u64>,
    /// Numbers of arrows by the event of their slice.
    arrows: HashMap<u64, Vec<u64>>,
    count: u64,
    unbound: u64,
}

impl Binder {
    pub(super) fn add(&mut self, number: u64, ts: i64, event: &Event, thread: Thread) {
        let state = self.threads.entry(thread).or_default();
        let mut ended = Vec::new();
        let mut slice = None;
        match event.phase {
            'X' | 'B' | 'i' | 'I' | 'R' => {
                let end = match event.phase {
                    'B' => None,
                    'X' => match event.dur {
                        Some(dur) if dur >= 0 => Some(ts.saturating_add(dur)),
                        _ => return,
                    },
                    _ => Some(ts),
                };
                if event.phase != 'X' && event.phase != 'B' && event.scope != Scope::Thread {
                    return;
                }
                let open = Open::new(number, ts, end, &event.name, &event.category);
                if state.stack.begin(open, &mut ended).is_ok() {
                    let waiting = core::mem::take(&mut state.waiting);
                    for key in waiting {
                        self.end(&key, number);
                    }
                    slice = Some(number);
                }
            }
            'E' => _ = state.stack.end(ts, &event.name, &event.category, &mut ended),
            'b' | 'n' => slice = Some(number),
            's' | 't' | 'f' => {
                let Some(id) = event.id else {
                    self.unbound += 1;
                    return;
                };
                let key = (id, Some((event.category.clone(), event.name.clone())));
                let top = state.stack.top();
                match (event.phase, top) {
                    ('f', _) if !event.binds_enclosing => state.waiting.push(key),
                    (_, None) => self.unbound += 1,
                    ('s', Some(slice)) => self.begin(key, slice),
                    ('t', Some(slice)) => self.step(key, slice),
                    (_, Some(slice)) => self.end(&key, slice),
                }
            }
            _ => {}
        }
        let (Some(slice), Some(bound)) = (slice, event.bound) else { return };
        let key = (bound.id, None);
        match (bound.is_in, bound.is_out) {
            (true, true) => self.step(key, slice),
            (false, true) => self.begin(key, slice),
            (true, false) => self.end(&key, slice),
            (false, false) => {}
        }
    }

    fn begin(&mut self, key: Key, slice: u64) {
        self.last.entry(key).or_insert(slice);
    }

    fn step(&mut self, key: Key, slice: u64) {
        self.end(&key, slice);
        if let Some(last) = self.last.get_mut(&key) {
            *last = slice;
        }
    }

    fn end(&mut self, key: &Key, slice: u64) {
        let Some(&before) = self.last.get(key) else {
            self.unbound += 1;
            return;
        };
        self.count += 1;
        for end in [before, slice] {
            self.arrows.entry(end).or_default().push(self.count);
        }
    }

    /// Returns the numbers of arrows by the event of their slice, and how many ends of flows have
    /// no slice.
    pub(super) fn finish(self) -> (HashMap<u64, Vec<u64>>, u64) {
        let waiting: usize = self.threads.values().map(|state| state.waiting.len()).sum();
        (self.arrows, self.unbound + waiting as u64)
    }
}
