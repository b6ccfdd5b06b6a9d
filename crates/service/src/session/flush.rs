//! Flushes of a session: time-outs, reasons, and the producers that have not answered yet
//! (`docs/spec/service.md §12`).

use esatto_map::{LargeMap, LargeSet};
use esatto_schema::trace_stats::FinalFlushOutcome;

use super::clone::{BufferGroup, CloneId};
use super::flush_strategy::FlushStrategy;
use super::instances::Instance;
use super::state::State;
use super::{Session, or_default};
use crate::api::{CallId, MemoryKind};
use crate::context::Context;
use crate::ids::{BufferId, InstanceId, ProducerId};
use crate::producer::Producers;
use crate::producer::commands::{Command, encoded};

/// Milliseconds that a flush waits for answers, by default.
const DEFAULT_FLUSH_TIMEOUT_MS: u32 = 5000;

/// Flushes of one session that may wait for answers. The service refuses more.
const MAX_PENDING_FLUSHES: usize = 1000;

/// The reason of a flush (`docs/spec/service.md §12`, flags).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushReason {
    Periodic,
    TraceStop,
    Clone {
        for_bugreport: bool,
    },
    /// The flags that the consumer gave.
    Consumer(u64),
}

impl FlushReason {
    const STOP: u64 = 2;
    const CLONE: u64 = 3;
    const BY_SERVICE: u64 = 0x10;
    const FOR_BUGREPORT: u64 = 0x100;

    pub(crate) fn flags(self) -> u64 {
        match self {
            Self::Periodic => Self::BY_SERVICE | 1,
            Self::TraceStop => Self::BY_SERVICE | Self::STOP,
            Self::Clone { for_bugreport: false } => Self::BY_SERVICE | Self::CLONE,
            Self::Clone { for_bugreport: true } => Self::FOR_BUGREPORT | Self::BY_SERVICE | Self::CLONE,
            Self::Consumer(flags) => flags,
        }
    }

    /// Tells whether the trace names the data sources that did not answer.
    pub(crate) fn names_slow_ones(self) -> bool {
        matches!(self.flags() & 0xf, Self::STOP | Self::CLONE)
    }
}

/// The step that follows a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterFlush {
    Nothing,
    Reply(CallId),
    WriteFile,
    StopSession,
    /// A clone takes some of the session's buffers.
    Clone(CloneId, BufferGroup),
}

/// The instances that a flush is for.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The newest instance at the time of the flush.
    pub(crate) up_to: InstanceId,
    /// The buffers that the instances write to, `None` for all.
    pub(crate) buffers: Option<Vec<BufferId>>,
}

impl Asked {
    pub(crate) fn includes(&self, instance: &Instance) -> bool {
        let is_for = |buffers: &Vec<BufferId>| buffers.contains(&instance.buffer);
        instance.id <= self.up_to && self.buffers.as_ref().is_none_or(is_for)
    }
}

/// A flush that producers have not answered yet.
#[derive(Debug)]
pub(crate) struct PendingFlush {
    /// Producers that have not answered. Each of them knows of this flush (`Producer::flushes`).
    pub(crate) waiting_for: LargeSet<ProducerId>,
    /// All producers have answered, or the time is over. The service is copying the uncommitted
    /// chunks.
    pub(crate) is_over: bool,
    pub(crate) asked: Asked,
    pub(crate) reason: FlushReason,
    pub(crate) then: AfterFlush,
}

/// The flushes of a session.
#[derive(Debug)]
pub(crate) struct Flushes {
    pub(crate) strategy: FlushStrategy,
    /// Flushes that producers have not answered yet, by their numbers.
    pub(crate) pending: LargeMap<u64, PendingFlush>,
    pub(crate) requested: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) final_outcome: Option<FinalFlushOutcome>,
}

impl Flushes {
    pub(crate) fn new(strategy: FlushStrategy) -> Self {
        Self { strategy, pending: LargeMap::new(), requested: 0, succeeded: 0, failed: 0, final_outcome: None }
    }
}

impl Session {
    pub(crate) fn flush_timeout_ms(&self) -> u32 {
        or_default(self.config.flush_timeout_ms, DEFAULT_FLUSH_TIMEOUT_MS)
    }

    /// Tells whether a flush can begin: the session runs, and not too many flushes wait.
    pub(crate) fn can_flush(&self) -> bool {
        self.flushes.pending.len() <= MAX_PENDING_FLUSHES && self.state() == State::Started
    }

    /// Sends a flush to the producers of the instances that it is for. Returns false if there are
    /// none.
    pub(crate) fn ask_to_flush(
        &mut self,
        id: u64,
        asked: Asked,
        reason: FlushReason,
        then: AfterFlush,
        producers: &mut Producers,
        cx: &mut Context<'_>,
    ) -> bool {
        let mut requests: LargeMap<ProducerId, Vec<InstanceId>> = LargeMap::new();
        cx.charge(self.instances.len());
        for instance in self.instances.iter().filter(|instance| asked.includes(instance)) {
            let Some(producer) = producers.get(instance.producer) else { continue };
            let scrapes_itself = producer.memory_kind == MemoryKind::Emulated && producer.wants_scraping;
            if !instance.no_flush {
                requests.get_or_default(instance.producer).push(instance.id);
            } else if scrapes_itself {
                requests.get_or_default(instance.producer);
            }
        }
        self.unread.forget_slow_flush();
        self.flushes.requested += 1;
        for (producer, instances) in &requests {
            if let Some(producer) = producers.get_mut(*producer) {
                producer.flushes.insert(id, self.id);
                producer.send(Command::Encoded(encoded::flush(instances, id, reason.flags())), cx);
            }
        }
        let waiting_for: LargeSet<ProducerId> = requests.into_keys().collect();
        let is_asked = !waiting_for.is_empty();
        self.flushes.pending.insert(id, PendingFlush { waiting_for, is_over: false, asked, reason, then });
        is_asked
    }
}
