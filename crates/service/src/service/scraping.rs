//! Scraping: what producers have written, but not committed, is copied when a flush or a session
//! ends (`docs/spec/service.md §13`, `docs/spec/shared-memory.md §18`).
//!
//! A session may have very many producers, and each of them up to 32 MiB of shared memory. So the
//! memories are looked at one after the other, and after [`WORK_PER_SCRAPE`] it is the turn of
//! others; the rest follows when a timer without delay expires. What waits for the copies, the
//! answer to a flush and the end of the session, comes after the last one. Most sessions are done
//! in one step.

use crate::api::TimerClock;
use crate::context::Context;
use crate::ids::{ProducerId, SessionId};
use crate::probe::{self, Note};
use crate::service::Service;
use crate::session::scrape::{Scrape, Scrapes};
use crate::timers::Purpose;

/// Work of scraping for one session before it is the turn of others. The memory that goes beyond it
/// is the last of the step.
const WORK_PER_SCRAPE: u64 = 16 << 10;

/// The same, for a session that is freed while it streams into a file: nothing can follow.
const WORK_PER_LAST_SCRAPE: u64 = 1 << 20;

impl Service {
    /// Copies what was not committed for a session, then ends these flushes, and the session if it
    /// stops.
    pub(crate) fn scrape_session(
        &mut self,
        session_id: SessionId,
        flushes: Vec<(u64, bool)>,
        stop: bool,
        cx: &mut Context<'_>,
    ) {
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        let next = &mut session.scrapes.next;
        next.flushes.extend(flushes);
        next.stop |= stop;
        if session.scrapes.begin() {
            self.continue_scrape(session_id, cx);
        }
    }

    /// The next memories of a session that is scraped.
    pub(crate) fn continue_scrape(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        if self.scrape_members(session_id, WORK_PER_SCRAPE, cx) {
            self.end_scrape(session_id, cx);
        } else {
            self.timers.set(session_id, Purpose::Scrape, TimerClock::Monotonic, 0, cx);
        }
    }

    /// The session is freed: if it was about to end when its scrape is over, it ends now. Flushes
    /// are left to whoever frees it.
    pub(crate) fn end_last_scrape(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        if !session.scrapes.are_last() {
            return;
        }
        if session.scrapes.next.stop {
            // What is under way is for flushes: it may have passed what was written since.
            session.scrapes.now = None;
            session.scrapes.begin();
            probe::note(Note::ScrapeBeginsAnew(session_id.0));
        }
        // Nobody sees the buffers of a session without a file any more.
        let has_file = session.file.open().is_some();
        if has_file && !self.scrape_members(session_id, WORK_PER_LAST_SCRAPE, cx) {
            cx.warn(format!(
                "session {} is freed before all shared memory was looked at: its file lacks some of what was not committed",
                session_id.0
            ));
        }
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.scrapes = Scrapes::default();
        }
        self.timers.cancel(session_id, Purpose::Scrape, cx);
        self.complete_stop(session_id, cx);
    }

    /// Copies from memories until so much was done; whether all are done.
    fn scrape_members(&mut self, session_id: SessionId, work: u64, cx: &mut Context<'_>) -> bool {
        let Self { producers, buffers, sessions, .. } = self;
        let Some(session) = sessions.get_mut(session_id) else { return true };
        let Some(under_way) = &mut session.scrapes.now else { return true };
        probe::note(Note::Scrape(Some(session_id.0)));
        let mut wanted = session.buffers.clone();
        wanted.sort_unstable();
        let end = cx.work.saturating_add(work);
        for (id, _) in session.members.by_producer.range(under_way.from..) {
            if cx.work > end {
                under_way.from = *id;
                return false;
            }
            cx.charge(1);
            let Some(producer) = producers.get_mut(*id) else { continue };
            producer.scrape(buffers, |buffer| wanted.binary_search(&buffer).is_ok(), cx);
        }
        probe::note(Note::ScrapeEnds(session_id.0));
        true
    }

    fn end_scrape(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let under_way = self.sessions.get_mut(session_id).and_then(|session| session.scrapes.now.take());
        let Some(Scrape { waiting, .. }) = under_way else { return };
        for (flush, succeeded) in waiting.flushes {
            self.end_flush(session_id, flush, succeeded, cx);
        }
        if waiting.stop {
            self.complete_stop(session_id, cx);
        }
        if self.sessions.get_mut(session_id).is_some_and(|session| session.scrapes.begin()) {
            probe::note(Note::Scrape(Some(session_id.0)));
            self.timers.set(session_id, Purpose::Scrape, TimerClock::Monotonic, 0, cx);
        }
    }

    /// Copies a producer's uncommitted chunks into whatever buffers they are for.
    pub(crate) fn scrape_producer(&mut self, producer: ProducerId, cx: &mut Context<'_>) {
        if let Some(producer) = self.producers.get_mut(producer) {
            probe::note(Note::Scrape(None));
            producer.scrape(&mut self.buffers, |_| true, cx);
        }
    }
}
