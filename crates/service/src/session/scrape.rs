//! Scrapes of a session that are under way, and the flushes that wait for them.

use crate::ids::ProducerId;

/// What waits for the copies of a session's uncommitted chunks.
#[derive(Debug, Default)]
pub(crate) struct Scrapes {
    /// The scrape that is under way.
    pub(crate) now: Option<Scrape>,
    /// What came while it was: it wants copies that are newer.
    pub(crate) next: Waiting,
}

#[derive(Debug)]
pub(crate) struct Scrape {
    /// Members with smaller ids are done.
    pub(crate) from: ProducerId,
    pub(crate) waiting: Waiting,
}

/// What is done when the copies are there.
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
    /// Begins the next scrape; not while there is one, or if nothing waits for one.
    pub(crate) fn begin(&mut self) -> bool {
        let begins = self.now.is_none() && !self.next.is_empty();
        if begins {
            self.now = Some(Scrape { from: ProducerId(0), waiting: core::mem::take(&mut self.next) });
        }
        begins
    }

    /// Whether the session ends as soon as the copies are there.
    pub(crate) fn are_last(&self) -> bool {
        self.next.stop || self.now.as_ref().is_some_and(|scrape| scrape.waiting.stop)
    }
}
