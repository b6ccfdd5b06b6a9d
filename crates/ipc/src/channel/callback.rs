//! Running the program's code after the locks of a channel are released.

use std::task::Waker;

use super::Shared;
use super::events::{Callback, Done, Next};

impl Done {
    /// Runs everything. The caller holds no lock.
    pub(super) fn run(self, shared: &Shared) {
        self.wakers.into_iter().for_each(Waker::wake);
        for (id, callback) in self.callbacks {
            shared.run_callback(id, callback);
        }
    }
}

impl Shared {
    /// Passes all events of a call to its callback, and keeps the callback unless the call ended.
    pub(super) fn run_callback(&self, id: u64, callback: Callback) {
        let mut next = Some(callback);
        while let Some(mut callback) = next.take() {
            match self.next(id) {
                Next::Reply(arrived) => {
                    if !callback(Ok(Some(arrived))) {
                        return self.cancel(id);
                    }
                }
                Next::End(end) => {
                    callback(end.map(|()| None));
                    return;
                }
                Next::Pending => {}
            }
            next = self.lock().slots.set_callback(id, callback);
        }
    }

    /// Takes the next event of a call, and gives the service credit for a reply.
    pub(super) fn next(&self, id: u64) -> Next {
        let mut done = Done::default();
        let mut state = self.lock();
        let next = state.slots.next(id);
        if let Next::Reply(arrived) = &next {
            let super::State { caller, out, .. } = &mut *state;
            let before = out.is_empty();
            caller.taken(id, arrived.len, arrived.is_marked, out);
            // The program has the reply, so the connection must not end before it has taken it.
            if before && !out.is_empty() && self.write(&mut state, &mut done).is_err() {
                state.wake_drivers(&mut done);
            }
        }
        drop(state);
        done.run(self);
        next
    }
}
