//! Names of guarded sessions that began a short time ago (`docs/spec/service.md §5`, row 22).

use std::collections::VecDeque;

use esatto_map::LargeMap;

use crate::api::{Now, Peer};
use crate::context::Context;
use crate::fair_share::{Bounds, Pool};

/// Shortest time between the starts of two guarded sessions of one name.
const INTERVAL_NS: u64 = 300_000_000_000;

/// Names that the service remembers for all users.
///
/// A user gets at most half of what is left. When its share is used up, it gets no guarded session.
/// Root and the service's own user have their own names, as many as all others.
const MAX_GUARDED_NAMES: usize = 1024;

const NAMES: Bounds = Bounds { each: 0, pool: MAX_GUARDED_NAMES as u64 };

/// The start times of guarded sessions by name.
#[derive(Debug, Default)]
pub(crate) struct GuardedNames {
    starts: LargeMap<Vec<u8>, u64>,
    /// The same in the order of time, and the user that is charged.
    in_order: VecDeque<(u64, Vec<u8>, Charged)>,
    /// Names that users were charged.
    pool: Pool,
    /// Names of root and the service's own user.
    of_trusted: usize,
}

/// The user that is charged for a name.
#[derive(Clone, Copy, Debug)]
enum Charged {
    User(i32),
    Trusted,
    /// No user, because sessions that began at the same time took the last share.
    Nobody,
}

/// Returns the error for a guarded session whose name began a short time ago.
pub(crate) fn too_early() -> String {
    "a session with enable_extra_guardrails and this name began less than 300 s ago".to_owned()
}

fn user(uid: i32) -> Peer {
    Peer { uid, pid: None, machine_id: 0 }
}

impl GuardedNames {
    /// Checks that a guarded session of this name and this user may begin now.
    pub(crate) fn check(
        &mut self,
        name: &[u8],
        uid: i32,
        is_trusted: bool,
        cx: &mut Context<'_>,
    ) -> Result<(), String> {
        cx.charge(1);
        self.forget_old(cx.now);
        if self.starts.contains_key(name) {
            return Err(too_early());
        }
        let has_room = if is_trusted {
            self.of_trusted < MAX_GUARDED_NAMES
        } else {
            let has_room = self.pool.take(NAMES, &user(uid), 0, 1);
            if has_room {
                self.pool.give_back(NAMES, &user(uid), 1, 1);
            }
            has_room
        };
        if has_room {
            return Ok(());
        }
        Err(format!(
            "uid {uid} has used up its share of sessions with enable_extra_guardrails for 300 s; all users together \
             began {} of them",
            self.starts.len()
        ))
    }

    /// Remembers that a guarded session of this name begins.
    pub(crate) fn add(&mut self, name: Vec<u8>, uid: i32, is_trusted: bool, now: &Now) {
        self.forget_old(now);
        if self.starts.insert(name.clone(), now.boottime_ns).is_some() {
            return;
        }
        let charged = if is_trusted {
            self.of_trusted += 1;
            Charged::Trusted
        } else if self.pool.take(NAMES, &user(uid), 0, 1) {
            Charged::User(uid)
        } else {
            Charged::Nobody
        };
        self.in_order.push_back((now.boottime_ns, name, charged));
    }

    /// Iterates over the users of the names, except root and the service's own user.
    pub(crate) fn holders(&self) -> impl Iterator<Item = i32> {
        self.in_order.iter().filter_map(|(_, _, charged)| match charged {
            Charged::User(uid) => Some(*uid),
            Charged::Trusted | Charged::Nobody => None,
        })
    }

    /// Forgets old names. Each name pays for the step that forgets it.
    fn forget_old(&mut self, now: &Now) {
        let is_old = |start_ns: &u64| now.boottime_ns.saturating_sub(*start_ns) > INTERVAL_NS;
        while self.in_order.front().is_some_and(|(start_ns, ..)| is_old(start_ns)) {
            let Some((_, name, charged)) = self.in_order.pop_front() else { return };
            match charged {
                Charged::User(uid) => self.pool.give_back(NAMES, &user(uid), 1, 1),
                Charged::Trusted => self.of_trusted -= 1,
                Charged::Nobody => {}
            }
            self.starts.remove(&name);
        }
    }
}
