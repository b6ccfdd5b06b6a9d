//! Scraping: copying what producers have written but not committed, when a flush or a session ends
//! (`docs/spec/service.md §14`, `docs/spec/shared-memory.md §18`).
//!
//! A session may have very many producers, each with up to 32 MiB of shared memory. So the service
//! scrapes one memory after the other. After [`WORK_PER_SCRAPE`] it handles other inputs, and
//! continues when a timer without delay expires. The answer to a flush and the end of the session
//! follow the last copy. Most sessions need one step.

use crate::api::TimerClock;
use crate::context::Context;
use crate::ids::{ProducerId, SessionId};
use crate::observer::Step;
use crate::service::Service;
use crate::session::pending_scrapes::{Scrape, Scrapes};
use crate::timers::Purpose;

/// Work of a step that scrapes for a session. The memory that exceeds it is the last of the step.
const WORK_PER_SCRAPE: u64 = 16 << 10;

/// Work of scraping for a session that is freed while it streams into a file, because no step can
/// follow.
const WORK_PER_LAST_SCRAPE: u64 = 1 << 20;

impl Service {
    /// Copies the uncommitted chunks for a session. Then ends these flushes, and the session if
    /// `stop` is set.
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

    /// Scrapes the next memories of a session.
    pub(crate) fn continue_scrape(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        if self.scrape_members(session_id, WORK_PER_SCRAPE, cx) {
            self.end_scrape(session_id, cx);
        } else {
            self.timers.set(session_id, Purpose::Scrape, TimerClock::Monotonic, 0, cx);
        }
    }

    /// Ends the scrape of a session that is being freed. If the session was about to end after its
    /// scrape, it ends now. The caller ends the flushes.
    pub(crate) fn end_last_scrape(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        if !session.scrapes.are_last() {
            return;
        }
        if session.scrapes.next.stop {
            // The scrape under way is for flushes. It may have passed memories that were written to
            // since.
            session.scrapes.now = None;
            session.scrapes.begin();
            self.observer.report(Step::ScrapeBeginsAgain(session_id.0));
        }
        // No client can read the buffers of a session without a file any more.
        let has_file = session.file.open().is_some();
        if has_file && !self.scrape_members(session_id, WORK_PER_LAST_SCRAPE, cx) {
            cx.warn(format!(
                "session {} is freed before all shared memory was scraped: its file lacks some uncommitted data",
                session_id.0
            ));
        }
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.scrapes = Scrapes::default();
        }
        self.timers.cancel(session_id, Purpose::Scrape, cx);
        self.complete_stop(session_id, cx);
    }

    /// Copies from memories up to this amount of work. Returns true if all are done.
    fn scrape_members(&mut self, session_id: SessionId, work: u64, cx: &mut Context<'_>) -> bool {
        let Self { producers, buffers, sessions, observer, .. } = self;
        let Some(session) = sessions.get_mut(session_id) else { return true };
        let Some(under_way) = &mut session.scrapes.now else { return true };
        observer.report(Step::Scrape(Some(session_id.0)));
        let mut wanted = session.buffers.clone();
        esatto_map::sort(&mut wanted);
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
        observer.report(Step::ScrapeEnds(session_id.0));
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
            self.observer.report(Step::Scrape(Some(session_id.0)));
            self.timers.set(session_id, Purpose::Scrape, TimerClock::Monotonic, 0, cx);
        }
    }

    /// Copies the uncommitted chunks of a producer that has disconnected into their buffers.
    pub(crate) fn scrape_producer(&mut self, producer: ProducerId, cx: &mut Context<'_>) {
        if let Some(producer) = self.producers.get_mut(producer) {
            self.observer.report(Step::Scrape(None));
            producer.scrape_last(&mut self.buffers, cx);
        }
    }
}
