//! Timers of the sessions. The owner of the service arms them and reports when they expire.

use esatto_map::{LargeMap, LargeSet};

use crate::api::{Now, Output, TimerClock, TimerId};
use crate::context::Context;
use crate::ids::SessionId;

/// Session and purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timer {
    pub(crate) session: SessionId,
    pub(crate) purpose: Purpose,
}

/// The step that runs when a timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// Writes sync marker, statistics and clocks. It comes first because the timers are ordered.
    Snapshot,
    /// Ends the session, because its duration is over.
    Duration,
    /// Ends the wait for data sources that did not acknowledge their stop.
    StopTimeout,
    /// Names the data sources that did not start.
    SlowStart,
    /// Writes into the trace file.
    WriteFile,
    /// Flushes at the interval of the config.
    PeriodicFlush,
    /// Asks data sources to clear their incremental state.
    ClearIncrementalState,
    /// Ends the wait for the answers to a flush.
    FlushTimeout(u64),
    /// Scrapes the next memories of a session.
    Scrape,
    /// Ends a session for which no start trigger came.
    TriggerTimeout,
    /// Ends a session after the delay of a stop trigger.
    TriggerStop,
    /// Reports a clone trigger after its delay.
    CloneTrigger(u64),
    /// Gives up a freed session whose file accepts no data.
    DrainStall,
}

impl Purpose {
    const LEAST: Self = Self::Snapshot;
}

/// All armed timers.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    by_id: LargeMap<TimerId, Timer>,
    by_session: LargeSet<(Timer, TimerId)>,
    last: u64,
}

impl Timers {
    /// Returns the number of armed timers.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Checks that both tables hold the same timers.
    ///
    /// # Panics
    ///
    /// If they do not.
    pub(crate) fn assert_consistent(&self) {
        assert_eq!(self.by_id.len(), self.by_session.len(), "timers that no session has");
    }

    /// Removes a timer that has expired, and returns its session and purpose.
    pub(crate) fn expire(&mut self, id: TimerId) -> Option<Timer> {
        let timer = self.by_id.remove(&id)?;
        self.by_session.remove(&(timer, id));
        Some(timer)
    }

    /// Arms a timer that fires after this many milliseconds.
    pub(crate) fn set(
        &mut self,
        session: SessionId,
        purpose: Purpose,
        clock: TimerClock,
        delay_ms: u32,
        cx: &mut Context<'_>,
    ) {
        let at_ns = clock_of(cx.now, clock).saturating_add(u64::from(delay_ms) * 1_000_000);
        self.set_at(session, purpose, clock, at_ns, cx);
    }

    /// Makes an armed timer fire after this many milliseconds at the latest. The step that it runs
    /// must disarm all timers with this purpose.
    pub(crate) fn bring_forward(&mut self, session: SessionId, purpose: Purpose, delay_ms: u32, cx: &mut Context<'_>) {
        let timer = Timer { session, purpose };
        // Both remain, and the first one counts.
        if self.by_session.range((timer, TimerId(0))..=(timer, TimerId(u64::MAX))).next().is_some() {
            self.set(session, purpose, TimerClock::Monotonic, delay_ms, cx);
        }
    }

    /// Arms a timer that fires at the next multiple of the period, at least a millisecond from now.
    pub(crate) fn set_periodic(
        &mut self,
        session: SessionId,
        purpose: Purpose,
        clock: TimerClock,
        period_ms: u32,
        cx: &mut Context<'_>,
    ) {
        let now_ms = clock_of(cx.now, clock) / 1_000_000;
        let period_ms = u64::from(period_ms.max(1));
        let at_ms = now_ms.saturating_add(period_ms - now_ms % period_ms);
        self.set_at(session, purpose, clock, at_ms.saturating_mul(1_000_000), cx);
    }

    fn set_at(&mut self, session: SessionId, purpose: Purpose, clock: TimerClock, at_ns: u64, cx: &mut Context<'_>) {
        self.last += 1;
        let id = TimerId(self.last);
        let timer = Timer { session, purpose };
        self.by_id.insert(id, timer);
        self.by_session.insert((timer, id));
        cx.push(Output::SetTimer { timer: id, clock, at_ns });
    }

    /// Disarms the timers of a session that match.
    pub(crate) fn cancel_matching(
        &mut self,
        session: SessionId,
        matches: impl Fn(Purpose) -> bool,
        cx: &mut Context<'_>,
    ) {
        let from = (Timer { session, purpose: Purpose::LEAST }, TimerId(0));
        let of_session = self.by_session.range(from..).take_while(|(timer, _)| timer.session == session);
        let cancelled: Vec<_> = of_session.filter(|(timer, _)| matches(timer.purpose)).copied().collect();
        cx.charge(cancelled.len());
        for (timer, id) in cancelled {
            self.forget(timer, id, cx);
        }
    }

    /// Disarms the timers of a session that have one purpose.
    pub(crate) fn cancel(&mut self, session: SessionId, purpose: Purpose, cx: &mut Context<'_>) {
        let timer = Timer { session, purpose };
        let range = (timer, TimerId(0))..=(timer, TimerId(u64::MAX));
        while let Some(&(timer, id)) = self.by_session.range(range.clone()).next() {
            self.forget(timer, id, cx);
        }
    }

    fn forget(&mut self, timer: Timer, id: TimerId, cx: &mut Context<'_>) {
        self.by_session.remove(&(timer, id));
        self.by_id.remove(&id);
        cx.push(Output::CancelTimer(id));
    }
}

fn clock_of(now: &Now, clock: TimerClock) -> u64 {
    match clock {
        TimerClock::Monotonic => now.monotonic_ns,
        TimerClock::Boottime => now.boottime_ns,
    }
}
