//! Answers that a data source may give later, from any thread.

use core::fmt;
use core::mem;
use std::sync::{Arc, OnceLock};

use super::AnySource;
use crate::instance::Ticket;

/// The end of an instance, which may be put off.
///
/// The instance ends, and the session goes on to its own end, when this is dropped. A data source
/// that has something left to write moves it to whichever thread writes that, and drops it there.
/// Trace points record until then, and those that begin afterwards do not. A thread other than the
/// one that drops it should [flush](crate::Context::flush) what it wrote.
///
/// The service waits for a time that the session's config says (`data_source_stop_timeout_ms`, by default 5 seconds), then reads the
/// trace without what is missing.
#[must_use = "the instance ends when it is dropped"]
pub struct Stop {
    instance: usize,
    done: Arc<Done>,
}

impl Stop {
    pub(crate) fn new(instance: usize, done: Done) -> Self {
        Self::shared(instance, Arc::new(done))
    }

    /// One of several that all have to be dropped.
    pub(crate) const fn shared(instance: usize, done: Arc<Done>) -> Self {
        Self { instance, done }
    }

    /// The number of the instance, as in [`Context::instance`](crate::Context::instance).
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

/// A request to write what a data source has kept back so far.
///
/// The service is told that everything is there when this is dropped, which may be later and on another thread. Threads that wrote in answer
/// to it should [flush](crate::Context::flush) before.
#[must_use = "the flush is acknowledged when it is dropped"]
pub struct Flush {
    instance: usize,
    flags: u64,
    done: Done,
}

/// Why a service asks for a flush (`docs/spec/wire-protocol.md` §9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlushReason {
    /// Nobody said.
    Unknown,
    /// The session's config wants one regularly.
    Periodic,
    /// The session ends.
    TraceStop,
    /// The session is being cloned.
    TraceClone,
    /// A consumer asked.
    Explicit,
}

/// Who asked for a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlushInitiator {
    /// Nobody said.
    Unknown,
    /// The service itself.
    Service,
    /// A command line tool.
    CommandLine,
    /// A program, by a library such as this one.
    Consumer,
}

/// What a clone is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloneTarget {
    /// Nobody said, or it is no clone.
    Unknown,
    /// A bug report.
    Bugreport,
}

impl Flush {
    pub(crate) const fn new(instance: usize, flags: u64, done: Done) -> Self {
        Self { instance, flags, done }
    }

    /// The number of the instance, as in [`Context::instance`](crate::Context::instance).
    #[must_use]
    pub const fn instance(&self) -> usize {
        self.instance
    }

    /// Why.
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

    /// By whom.
    #[must_use]
    pub const fn initiator(&self) -> FlushInitiator {
        match self.flags >> 4 & 0xf {
            1 => FlushInitiator::Service,
            2 => FlushInitiator::CommandLine,
            3 => FlushInitiator::Consumer,
            _ => FlushInitiator::Unknown,
        }
    }

    /// For which kind of clone.
    #[must_use]
    pub const fn clone_target(&self) -> CloneTarget {
        match self.flags >> 8 & 0xf {
            1 => CloneTarget::Bugreport,
            _ => CloneTarget::Unknown,
        }
    }

    /// The flags as they came.
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

/// What was waited for.
#[derive(Clone, Copy)]
pub(crate) enum Completion {
    /// Nothing any more.
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

/// Sets the function that hands completions to the control thread. Only the first call has an effect.
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
        // Not by the control thread, which may be busy: from here on no trace point begins to
        // record.
        self.close();
        let completion = mem::replace(&mut self.0, Completion::Told);
        if matches!(completion, Completion::Told) {
            return;
        }
        let unsent = match SEND.get() {
            Some(send) => send(completion),
            None => Some(completion),
        };
        // After the end of the control thread nobody else ends the instance, and no other comes in its place meanwhile.
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
