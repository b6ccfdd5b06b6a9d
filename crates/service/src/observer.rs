//! The steps of one call of `Service::handle`, in their order, for tests that check each of them.
//!
//! Outputs alone do not tell a test whether the service scraped a producer before or after it read
//! a buffer, but the packets that a read returns depend on that.

use core::fmt;

/// A step inside of one call of `Service::handle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The service begins to copy uncommitted chunks: those for the buffers of a session, perhaps
    /// in several steps. Without a session, those of one producer for all buffers.
    Scrape(Option<u64>),
    /// A session is about to be freed. The service gives up its scrape and begins it again.
    ScrapeBeginsAgain(u64),
    /// All uncommitted chunks for the buffers of a session are copied.
    ScrapeEnds(u64),
    /// A pass over the buffers of a session ends.
    Read {
        /// The session.
        session: u64,
        /// The reason for the end.
        end: PassEnd,
    },
    /// A clone begins. Buffers of its source with `clear_before_clone` are empty now.
    CloneBegins {
        /// The number of the clone.
        clone: u64,
        /// The session that is cloned.
        source: u64,
    },
    /// A clone copies or moves a buffer of its source.
    CloneTakes {
        /// The number of the clone.
        clone: u64,
        /// The index of the buffer in the source.
        index: usize,
    },
    /// A clone becomes a session.
    CloneMade {
        /// The number of the clone.
        clone: u64,
        /// The session that it is from now on.
        session: u64,
    },
    /// The service gives up the clone with this number.
    CloneAbandoned(u64),
    /// A commit has filled a part of a ring. The service asks the writers of a session's ring for
    /// their names.
    AsksForNames,
}

/// The reason why a pass over the buffers of a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassEnd {
    /// No buffer has a packet left.
    Exhausted,
    /// The pass returned as many bytes as it may.
    More,
    /// The pass did as much work as one turn may.
    OutOfWork,
    /// The consumer or file takes no more. The packet that it refused is lost.
    Refused,
    /// The consumer or file did not even take the packets of the service itself.
    NotBegun,
}

/// The function that a service calls at each step.
#[derive(Default)]
pub(crate) struct Observer(Option<Box<dyn Fn(Step) + Send>>);

impl Observer {
    /// Calls `observe` at each step from now on.
    pub(crate) fn new(observe: impl Fn(Step) + Send + 'static) -> Self {
        Self(Some(Box::new(observe)))
    }

    /// Reports a step, in builds with debug assertions.
    #[inline]
    pub(crate) fn report(&self, step: Step) {
        if cfg!(debug_assertions) {
            if let Some(observe) = &self.0 {
                observe(step);
            }
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observer").field(&self.0.is_some()).finish()
    }
}
