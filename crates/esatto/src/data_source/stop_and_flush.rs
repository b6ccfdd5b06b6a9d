//! Answers that a data source may give later, from any thread.

use core::fmt;
use core::mem;
use std::sync::{Arc, OnceLock};

use esatto_instances::Ticket;

use super::AnySource;

/// The end of an instance, which a data source may delay.
///
/// Dropping it ends the instance, so that the session can end. A data source that has something
/// left to write moves it to the thread that writes, and drops it there. Until then, trace points
/// that have begun record; later ones do not. If another thread wrote packets, that thread should
/// [flush](crate::Context::flush) them.
///
/// The service waits as long as the session's config says (`data_source_stop_timeout_ms`, by
/// default 5 seconds). It then reads the trace without the missing part.
#[must_use = "the instance ends when it is dropped"]
pub struct Stop {
    instance: usize,
    done: Arc<Done>,
}

impl Stop {
    pub(crate) fn new(instance: usize, done: Done) -> Self {
        Self::shared(instance, Arc::new(done))
    }

    /// Makes one of several, which all have to be dropped.
    pub(crate) const fn shared(instance: usize, done: Arc<Done>) -> Self {
        Self { instance, done }
    }

    /// Returns the number of the instance, as in [`Context::instance`](crate::Context::instance).
    #[must_use]
    pub const fn instance(&self) -> usize {
        self.instance
    }

    /// Keeps trace points that begin from now on from recording into the instance, which ends when
    /// this is dropped.
    #[doc(hidden)]
    pub fn close(&self) {
        self.done.close();
    }

    /// Ends the instance; the same as dropping this.
    pub fn complete(self) {
        drop(self.done);
    }
}

/// A request to write the data that a data source has kept back so far.
///
/// Dropping it tells the service that everything is written. That may happen later and on another
/// thread. Threads that wrote in answer to it should [flush](crate::Context::flush) first.
#[must_use = "the flush is acknowledged when it is dropped"]
pub struct Flush {
    instance: usize,
    flags: u64,
    done: Done,
}

/// The reason for a flush (`docs/spec/wire-protocol.md` §9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlushReason {
    /// Not given.
    Unknown,
    /// The session's config asks for regular flushes.
    Periodic,
    /// The session ends.
    TraceStop,
    /// The session is being cloned.
    TraceClone,
    /// A consumer has asked for it.
    Explicit,
}

/// The program that asked for a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlushInitiator {
    /// Not given.
    Unknown,
    /// The service itself.
    Service,
    /// A command line tool.
    CommandLine,
    /// A program, through a library such as this one.
    Consumer,
}

/// The purpose of a clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloneTarget {
    /// Not given, or no clone.
    Unknown,
    /// A bug report.
    Bugreport,
}

impl Flush {
    pub(crate) const fn new(instance: usize, flags: u64, done: Done) -> Self {
        Self { instance, flags, done }
    }

    /// Returns the number of the instance, as in [`Context::instance`](crate::Context::instance).
    #[must_use]
    pub const fn instance(&self) -> usize {
        self.instance
    }

    /// Returns the reason.
    #[must_use]
    pub const fn reason(&self) -> FlushReason {
        match self.flags & 0xf {
            1 => FlushReason::Periodic,
            2 => FlushReason::TraceStop,
            3 => FlushReason::TraceClone,
            4 => FlushReason::Explicit,
            _ => FlushReason::Unknown,
        }
    }

    /// Returns which program asked.
    #[must_use]
    pub const fn initiator(&self) -> FlushInitiator {
        match self.flags >> 4 & 0xf {
            1 => FlushInitiator::Service,
            2 => FlushInitiator::CommandLine,
            3 => FlushInitiator::Consumer,
            _ => FlushInitiator::Unknown,
        }
    }

    /// Returns the purpose of the clone.
    #[must_use]
    pub const fn clone_target(&self) -> CloneTarget {
        match self.flags >> 8 & 0xf {
            1 => CloneTarget::Bugreport,
            _ => CloneTarget::Unknown,
        }
    }

    /// Returns the flags as the service sent them.
    #[must_use]
    pub const fn flags(&self) -> u64 {
        self.flags
    }

    /// Acknowledges the flush; the same as dropping this.
    pub fn complete(self) {
        drop(self.done);
    }
}

/// Tells the control thread when it is dropped.
pub(crate) struct Done(Completion);

/// An answer of a data source.
#[derive(Clone, Copy)]
pub(crate) enum Completion {
    /// None: it has been sent.
    Told,
    Stopped {
        source: &'static dyn AnySource,
        ticket: Ticket,
    },
    Flushed {
        connection: u64,
        request: u64,
    },
}

/// Hands a completion to the control thread; returns it if there is none.
type Send = fn(Completion) -> Option<Completion>;

static SEND: OnceLock<Send> = OnceLock::new();

/// Sets the function that hands completions to the control thread. Only the first call has an
/// effect.
pub(crate) fn send_completions_by(send: Send) {
    let _ = SEND.set(send);
}

impl Done {
    pub(crate) const fn stopped(source: &'static dyn AnySource, ticket: Ticket) -> Self {
        Self(Completion::Stopped { source, ticket })
    }

    pub(crate) const fn flushed(connection: u64, request: u64) -> Self {
        Self(Completion::Flushed { connection, request })
    }

    fn close(&self) {
        if let Completion::Stopped { source, ticket } = self.0 {
            source.close(ticket);
        }
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        // Done here, because the control thread may be busy: trace points that begin from here on
        // do not record.
        self.close();
        let completion = mem::replace(&mut self.0, Completion::Told);
        if matches!(completion, Completion::Told) {
            return;
        }
        let unsent = match SEND.get() {
            Some(send) => send(completion),
            None => Some(completion),
        };
        // After the end of the control thread nothing else ends the instance, and no other instance
        // takes its slot meanwhile.
        if let Some(Completion::Stopped { source, ticket }) = unsent {
            source.end(ticket);
        }
    }
}

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Done").finish_non_exhaustive()
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stop").field("instance", &self.instance).finish_non_exhaustive()
    }
}

impl fmt::Debug for Flush {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flush")
            .field("instance", &self.instance)
            .field("reason", &self.reason())
            .field("initiator", &self.initiator())
            .finish_non_exhaustive()
    }
}
