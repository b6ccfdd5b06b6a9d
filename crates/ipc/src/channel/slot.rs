//! [`Slots`]: the replies of calls until the program takes them.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use super::events::{Arrived, Callback, Done, Next};
use crate::call_error::CallError;
use crate::observed::{Traced, TracedReply};

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
    traced: Traced,
    /// Replies that the program has taken.
    taken: u64,
    /// The program knows that the call has ended.
    is_over: bool,
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
    pub(super) fn insert(&mut self, id: u64, traced: Traced) {
        let mut slot = Slot::default();
        slot.traced = traced;
        self.open.insert(id, slot);
    }

    /// Notes that the program takes the only reply to a call, without storing it.
    pub(super) fn take_at_once(&mut self, id: u64, body: &[u8]) -> TracedReply {
        self.open.get_mut(&id).map_or(TracedReply::none(), |slot| slot.take(body, false))
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
        if let Some(mut arrived) = slot.replies.pop_front() {
            arrived.traced = slot.take(&arrived.body, arrived.has_more);
            return Next::Reply(arrived);
        }
        match slot.end.take() {
            Some(end) => {
                slot.end(&end);
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
        let end = Err(error);
        if slot.replies.is_empty() && !slot.traced.is_on_thread() {
            // Nobody may ever take it.
            slot.end(&end);
        }
        slot.end = Some(end);
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
    fn take(&mut self, body: &[u8], has_more: bool) -> TracedReply {
        self.taken += 1;
        self.is_over = !has_more;
        self.traced.reply(self.taken, body, has_more)
    }

    fn end(&mut self, end: &Result<(), CallError>) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        match end {
            Ok(()) => self.traced.finished(),
            Err(error) => self.traced.failed(self.taken + 1, error),
        }
    }

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

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.is_over {
            self.traced.cancelled();
        }
    }
}
