//! [`Slots`]: the replies of calls until the program takes them.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use super::events::{Arrived, Callback, Done, Next};
use crate::call_error::CallError;

/// Calls of a channel that have not been taken to their end, by number.
#[derive(Default)]
pub(super) struct Slots {
    open: BTreeMap<u64, Slot>,
}

#[derive(Default)]
struct Slot {
    replies: VecDeque<Arrived>,
    end: Option<Result<(), CallError>>,
    watcher: Watcher,
}

/// Receiver of a call's replies.
#[derive(Default)]
enum Watcher {
    #[default]
    None,
    Waker(Waker),
    Callback(Callback),
    /// The callback runs now.
    Running,
}

impl Slots {
    pub(super) fn insert(&mut self, id: u64) {
        self.open.insert(id, Slot::default());
    }

    pub(super) fn remove(&mut self, id: u64) {
        self.open.remove(&id);
    }

    /// Returns true if the call has not ended, and no reply waits for the program.
    pub(super) fn is_waiting(&self, id: u64) -> bool {
        self.open.get(&id).is_some_and(|slot| slot.replies.is_empty() && slot.end.is_none())
    }

    pub(super) fn next(&mut self, id: u64) -> Next {
        let Some(slot) = self.open.get_mut(&id) else { return Next::End(Ok(())) };
        if let Some(arrived) = slot.replies.pop_front() {
            return Next::Reply(arrived);
        }
        match slot.end.take() {
            Some(end) => {
                self.open.remove(&id);
                Next::End(end)
            }
            None => Next::Pending,
        }
    }

    /// Stores a reply, or the end without one.
    pub(super) fn arrived(&mut self, id: u64, arrived: Option<Arrived>, has_more: bool, done: &mut Done) {
        let Some(slot) = self.open.get_mut(&id) else { return };
        slot.replies.extend(arrived);
        if !has_more {
            slot.end = Some(Ok(()));
        }
        slot.notify(id, done);
    }

    pub(super) fn fail(&mut self, id: u64, error: CallError, done: &mut Done) {
        let Some(slot) = self.open.get_mut(&id) else { return };
        slot.end = Some(Err(error));
        slot.notify(id, done);
    }

    /// Wakes a task or thread at the next event of the call.
    pub(super) fn watch(&mut self, id: u64, waker: &Waker) {
        if let Some(slot) = self.open.get_mut(&id) {
            slot.watcher = Watcher::Waker(waker.clone());
        }
    }

    /// Calls a function at each event of the call. Returns it if one has happened already.
    pub(super) fn set_callback(&mut self, id: u64, callback: Callback) -> Option<Callback> {
        let slot = self.open.get_mut(&id)?;
        if slot.replies.is_empty() && slot.end.is_none() {
            slot.watcher = Watcher::Callback(callback);
            return None;
        }
        slot.watcher = Watcher::Running;
        Some(callback)
    }
}

impl Slot {
    fn notify(&mut self, id: u64, done: &mut Done) {
        match std::mem::take(&mut self.watcher) {
            Watcher::None => {}
            Watcher::Waker(waker) => done.wakers.push(waker),
            Watcher::Callback(callback) => {
                self.watcher = Watcher::Running;
                done.callbacks.push((id, callback));
            }
            Watcher::Running => self.watcher = Watcher::Running,
        }
    }
}
