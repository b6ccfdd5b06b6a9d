//! Admission: limits that depend on the other sessions (`docs/spec/service.md §5`, §25).

use esatto_map::LargeMap;
use esatto_schema::TraceConfig;
use esatto_schema::trace_config::LockdownModeOperation;

use super::freed::FreedSession;
use super::table::Sessions;
use crate::context::Context;
use crate::ids::SessionId;
use crate::session::Session;
use crate::session::config_check::{self, MAX_BUFFERS};
use crate::session::guarded_names;
use crate::session::state::State;

/// Sessions at a time, including clones.
pub(crate) const MAX_SESSIONS: usize = 15;

/// Sessions at a time without clones, if a user without a session asks for one. So three users
/// cannot keep out all others.
const MAX_SESSIONS_FOR_NEWCOMERS: usize = MAX_SESSIONS + 5;

/// Sessions at a time without clones, if root or the service's own user asks for one. So users
/// cannot keep out the administrators of the machine.
const MAX_SESSIONS_FOR_TRUSTED: usize = MAX_SESSIONS_FOR_NEWCOMERS + 5;

/// Sessions of a user.
pub(crate) const MAX_SESSIONS_PER_UID: usize = 5;

/// Clones at a time, complete or not.
///
/// They have their own limit, because a bug report may clone all sessions, and some of them twice
/// if triggers follow each other quickly.
const MAX_CLONES: usize = 2 * MAX_SESSIONS;

/// Clones of a user. Root may have more, because it makes bug reports of all users' sessions.
const MAX_CLONES_PER_UID: usize = 2 * MAX_SESSIONS_PER_UID;

// There are always free numbers for the buffers of a clone.
const _: () = assert!((MAX_SESSIONS + MAX_CLONES) * MAX_BUFFERS < u16::MAX as usize / 2);

/// Buffer numbers have 16 bits, and there may be twice as many clones.
const _: () = assert!((MAX_SESSIONS_FOR_TRUSTED + 2 * MAX_SESSIONS) * MAX_BUFFERS < u16::MAX as usize / 2);

impl Sessions {
    /// Tells whether a user is root or the service's own user. They may do what affects others, and
    /// have a reserve.
    pub(crate) fn is_trusted(&self, uid: i32) -> bool {
        uid == 0 || uid == self.service_uid
    }

    /// Checks a config against the other sessions. Sessions that the new exclusive session will end
    /// do not count.
    pub(crate) fn check_against_sessions(
        &mut self,
        config: &TraceConfig,
        uid: i32,
        is_locked_down: bool,
        cx: &mut Context<'_>,
    ) -> Result<(), String> {
        self.check_lockdown(config, uid, is_locked_down)?;
        let wanted = config.exclusive_prio.unwrap_or(0);
        cx.charge(2 * self.len() + self.freed.len());
        if let Some(strongest) = self.values().filter_map(|other| self.keeps_out(other, uid, wanted)).max() {
            return Err(match strongest >= wanted {
                true => {
                    format!("a session with exclusive_prio {strongest} exists, exclusive_prio {wanted} is not above it")
                }
                false => format!(
                    "a session with exclusive_prio {strongest} of root or the service's own user exists, which uid \
                     {uid} cannot end"
                ),
            });
        }
        let is_ended = |other: &Session| wanted > 0 && self.gives_way(other, uid, wanted);
        let staying: Vec<&Session> = self.values().filter(|other| !is_ended(other)).collect();
        let name = config.unique_session_name.as_deref().unwrap_or_default();
        let has_name = |session: &&Session| session.state() != State::Cloned && session.unique_name() == name;
        if !name.is_empty() && staying.iter().any(has_name) {
            return Err(format!("a session with unique_session_name {:?} exists", String::from_utf8_lossy(name)));
        }
        check_semaphores(config, &staying, cx)?;
        if config_check::is_guarded(config) {
            self.check_guarded_name(name, uid, cx)?;
        }
        let staying = self.values().filter(|other| self.counts_beside(other, uid, wanted));
        // Freed sessions count until their files are complete.
        let staying = staying.chain(self.staying_drains(uid, wanted));
        self.check_number(uid, &staying.collect::<Vec<_>>())
    }

    /// Checks that a user can have one clone more.
    pub(crate) fn check_clone_limits(&self, uid: i32) -> Result<(), String> {
        let made = self.values().filter(|session| session.state() == State::Cloned);
        let owners = || made.clone().map(|session| session.consumer_uid).chain(self.clones.values().map(|p| p.uid));
        let of_uid = owners().filter(|&owner| owner == uid).count();
        if of_uid >= MAX_CLONES_PER_UID && uid != 0 {
            return Err(format!("uid {uid} has {of_uid} clones, at most {MAX_CLONES_PER_UID} are possible"));
        }
        if owners().count() >= MAX_CLONES {
            return Err(format!("there are {MAX_CLONES} clones, no more are possible"));
        }
        Ok(())
    }

    /// Checks the lockdown mode: only root and the service's own user decide whose producers the
    /// service accepts.
    fn check_lockdown(&self, config: &TraceConfig, uid: i32, is_locked_down: bool) -> Result<(), String> {
        let changes = match config.lockdown_mode {
            Some(LockdownModeOperation::LOCKDOWN_SET) => true,
            Some(LockdownModeOperation::LOCKDOWN_CLEAR) => is_locked_down,
            _ => false,
        };
        if changes && !self.is_trusted(uid) {
            return Err(format!(
                "lockdown_mode is for root and the service's own user (uid {}), not for uid {uid}: it keeps out the \
                 producers of other users",
                self.service_uid
            ));
        }
        Ok(())
    }

    /// Tells whether a user's sessions may end those of another user. Root's and the service's own
    /// may.
    fn acts_on(&self, uid: i32, other: i32) -> bool {
        uid == other || self.is_trusted(uid)
    }

    /// Returns the priority of an exclusive session if it keeps out a new session of this user.
    fn keeps_out(&self, session: &Session, uid: i32, wanted: u32) -> Option<u32> {
        let priority = session.config.exclusive_prio.filter(|&priority| priority > 0)?;
        let owner = session.consumer_uid;
        // A user's exclusive session never ends one of root, at any priority.
        (self.acts_on(owner, uid) && (priority >= wanted || !self.acts_on(uid, owner))).then_some(priority)
    }

    /// Tells whether an exclusive session of this user ends another session. It does if the user
    /// may end it, and if it is weaker or its owner may not end sessions of this user.
    ///
    /// An equal or stronger session that stays is still opening, and will end this one.
    pub(crate) fn gives_way(&self, session: &Session, uid: i32, priority: u32) -> bool {
        let owner = session.consumer_uid;
        self.acts_on(uid, owner) && (session.config.exclusive_prio.unwrap_or(0) < priority || !self.acts_on(owner, uid))
    }

    /// Tells whether a session counts for the admission of a session of this priority (0: not
    /// exclusive).
    ///
    /// Among the sessions that the new one ends, exclusive ones that are still opening count.
    /// Otherwise a user could have any number of them, each stronger than the one before.
    pub(super) fn counts_beside(&self, session: &Session, uid: i32, wanted: u32) -> bool {
        let is_rising = session.opening().is_some() && session.config.exclusive_prio.unwrap_or(0) > 0;
        wanted == 0 || is_rising || !self.gives_way(session, uid, wanted)
    }

    /// Tells whether an exclusive session of this user ends a freed session that completes its
    /// file. Only sessions of root and of the service's own user do.
    pub(crate) fn drain_gives_way(&self, drain: &FreedSession, uid: i32, priority: u32) -> bool {
        self.is_trusted(uid) && self.gives_way(&drain.session, uid, priority)
    }

    /// Iterates over the freed sessions that a session of this priority (0: not exclusive) does not
    /// end.
    pub(super) fn staying_drains(&self, uid: i32, wanted_prio: u32) -> impl Iterator<Item = &Session> {
        let stays = move |drain: &&FreedSession| wanted_prio == 0 || !self.drain_gives_way(drain, uid, wanted_prio);
        self.freed.values().filter(stays).map(|drain| &drain.session)
    }

    /// Checks that a user can have one session more.
    fn check_number(&self, uid: i32, sessions: &[&Session]) -> Result<(), String> {
        let all = || sessions.iter();
        let of_uid = all().filter(|session| session.consumer_uid == uid).count();
        if of_uid >= MAX_SESSIONS_PER_UID {
            return Err(format!("uid {uid} has {of_uid} sessions, at most {MAX_SESSIONS_PER_UID} are possible"));
        }
        // Clones have their own limit, and do not count against the reserves.
        let without_clones = || all().filter(|session| session.state() != State::Cloned).count();
        let (count, max, whose) = match of_uid {
            _ if self.is_trusted(uid) => (without_clones(), MAX_SESSIONS_FOR_TRUSTED, ""),
            0 => (without_clones(), MAX_SESSIONS_FOR_NEWCOMERS, "; the rest is for root"),
            _ => (all().count(), MAX_SESSIONS, "; the rest is for root and for users without a session"),
        };
        if count >= max {
            return Err(format!("there are {count} sessions, no more are possible{whose}"));
        }
        Ok(())
    }

    fn check_guarded_name(&mut self, name: &[u8], uid: i32, cx: &mut Context<'_>) -> Result<(), String> {
        let opens = |session: &Session| session.opening().is_some() && config_check::is_guarded(&session.config);
        if self.values().any(|session| opens(session) && session.unique_name() == name) {
            return Err(guarded_names::too_early());
        }
        let is_trusted = self.is_trusted(uid);
        self.guarded_names.check(name, uid, is_trusted, cx)
    }
}

fn check_semaphores(config: &TraceConfig, sessions: &[&Session], cx: &mut Context<'_>) -> Result<(), String> {
    /// A semaphore, and the values of all its holders.
    struct Held {
        max: u64,
        others: u64,
        /// The session that was counted last. A session holds a semaphore once, however often its
        /// config names it.
        last: Option<SessionId>,
    }
    let mut wanted: LargeMap<&[u8], Held> = LargeMap::new();
    for semaphore in &config.session_semaphores {
        let max = semaphore.max_other_session_count.unwrap_or(0);
        let name = semaphore.name.as_deref().unwrap_or_default();
        let held = wanted.get_or_insert_with(name, || Held { max, others: 0, last: None });
        held.max = held.max.min(max);
    }
    cx.charge(config.session_semaphores.len());
    let holds =
        |session: &&Session| session.opening().is_some() || !matches!(session.state(), State::Disabled | State::Cloned);
    for session in sessions.iter().copied().filter(holds) {
        cx.charge(1 + session.config.session_semaphores.len());
        for semaphore in &session.config.session_semaphores {
            let Some(held) = wanted.get_mut(semaphore.name.as_deref().unwrap_or_default()) else { continue };
            if held.last.replace(session.id) != Some(session.id) {
                held.others += 1;
                held.max = held.max.min(semaphore.max_other_session_count.unwrap_or(0));
            }
        }
    }
    for (name, Held { max, others, .. }) in wanted {
        if others > max {
            let name = String::from_utf8_lossy(name);
            return Err(format!("session_semaphores: {others} sessions hold {name}, at most {max} others may"));
        }
    }
    Ok(())
}
