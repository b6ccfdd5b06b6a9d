//! Periodic snapshots in the trace: sync marker, statistics, clocks (`docs/spec/service.md §16`).

use crate::api::TimerClock;
use crate::context::Context;
use crate::ids::SessionId;
use crate::service::Service;
use crate::session::state::State;
use crate::timers::Purpose;

impl Service {
    /// Requests sync marker, statistics and clocks every `snapshot_interval_ms` while the session
    /// runs.
    pub(crate) fn periodic_snapshot(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        if session.state() != State::Started {
            return;
        }
        session.unread.sync_marker = true;
        session.unread.stats = true;
        session.snapshot(cx.now);
        let clock = match session.builtin(|builtin| builtin.prefer_suspend_clock_for_snapshot) {
            true => TimerClock::Boottime,
            false => TimerClock::Monotonic,
        };
        let interval_ms = session.snapshot_interval_ms();
        self.timers.set_periodic(session_id, Purpose::Snapshot, clock, interval_ms, cx);
    }
}
