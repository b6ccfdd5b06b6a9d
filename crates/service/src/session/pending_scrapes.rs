//! Scrape of a session that is under way, and the steps that wait for it or for the next one.

use crate::ids::ProducerId;

/// Scrapes of a session, and the steps that wait for them.
#[derive(Debug, Default)]
pub(crate) struct Scrapes {
    /// The scrape that is under way.
    pub(crate) now: Option<Scrape>,
    /// Steps that came during that scrape. They need newer copies.
    pub(crate) next: Waiting,
}

#[derive(Debug)]
pub(crate) struct Scrape {
    /// The next member. Members with smaller ids are done.
    pub(crate) from: ProducerId,
    pub(crate) waiting: Waiting,
}

/// Steps that follow when the copies are complete.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Flushes, and whether all producers answered.
    pub(crate) flushes: Vec<(u64, bool)>,
    /// The session ends.
    pub(crate) stop: bool,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.flushes.is_empty() && !self.stop
    }
}

impl Scrapes {
    /// Begins the next scrape. Returns false if one is under way, or if no step waits for one.
    pub(crate) fn begin(&mut self) -> bool {
        let begins = self.now.is_none() && !self.next.is_empty();
        if begins {
            self.now = Some(Scrape { from: ProducerId(0), waiting: core::mem::take(&mut self.next) });
        }
        begins
    }

    /// Tells whether the session ends when the copies are complete.
    pub(crate) fn are_last(&self) -> bool {
        self.next.stop || self.now.as_ref().is_some_and(|scrape| scrape.waiting.stop)
    }
}
