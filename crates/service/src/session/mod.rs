//! A session: one TraceConfig in execution (`docs/spec/service.md §4`).

pub(crate) mod config_check;
pub(crate) mod guarded_names;
pub(crate) mod instances;
pub(crate) mod triggers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use esatto_schema::TraceConfig;
use esatto_schema::trace_config::WriteFlushMode;
use esatto_schema::trace_stats::FinalFlushOutcome;

use crate::api::{CallId, ClientId, FileId, Now, PriorityBoost};
use crate::client_text::Name;
use crate::fair_share::Pool;
use crate::ids::{BufferId, InstanceId, ProducerId, SessionId};
use crate::machines::Told;
use crate::name_pattern::NamePattern;
use crate::read::compression::Codec;
use crate::read::sequence_ids::SequenceIds;
use crate::read::trace_filter::TraceFilter;
use crate::service::clone_session::{BufferGroup, CloneFacts, CloneId};
use crate::service::data_source_setup::{Entries, Member};
use crate::service::pending_resources::Opening;
use crate::service::scraping::Scrapes;
use crate::session::instances::{Instance, Instances};
use crate::session::triggers::Triggers;

/// Clock snapshots kept between reads.
const MAX_SNAPSHOTS: usize = 16;

/// `flush_started`, `all_data_sources_flushed` and `last_flush_slow_data_sources` events kept between reads, each.
const MAX_FLUSH_EVENTS: usize = 64;

/// How far a clock must have drifted from BOOTTIME since the last snapshot for a new one to be kept.
const SNAPSHOT_DRIFT_NS: u64 = 10_000_000;

/// Refused data sources named between reads; those beyond are only counted.
const MAX_REFUSED_NAMES: usize = 32;

const DEFAULT_FLUSH_TIMEOUT_MS: u32 = 5000;
const DEFAULT_STOP_TIMEOUT_MS: u32 = 5000;
const DEFAULT_FILE_WRITE_PERIOD_MS: u32 = 5000;
const MIN_FILE_WRITE_PERIOD_MS: u32 = 100;
const DEFAULT_SNAPSHOT_INTERVAL_MS: u32 = 10_000;
const FILE_FLUSH_PERIOD_MS: u32 = 5000;

/// Where a session is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Disabled,
    Configured,
    Started,
    WaitingForStop,
    /// A snapshot of another session.
    Cloned,
}

impl State {
    /// The name in queries.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Disabled => "DISABLED",
            Self::Configured => "CONFIGURED",
            Self::Started => "STARTED",
            Self::WaitingForStop => "STOP_WAIT",
            Self::Cloned => "CLONED_READ_ONLY",
        }
    }
}

/// Something in the life of the session that its trace tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    AllDataSourcesStarted,
    TracingStarted,
    AllDataSourcesFlushed,
    TracingDisabled,
    FlushStarted,
    CloneStarted,
    /// The index of the buffer.
    BufferCloned(u32),
    /// Producer and data source names.
    SlowStartingDataSources(Vec<(Name, Name)>),
    /// Producer and data source names.
    LastFlushSlowDataSources(Vec<(Name, Name)>),
    /// Producer and data source names, those of the first few.
    RefusedDataSources(Vec<(Name, Name)>),
}

/// Why a flush is made (`docs/spec/service.md §12`, flags).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushReason {
    Periodic,
    TraceStop,
    Clone {
        for_bugreport: bool,
    },
    /// Whatever the consumer says in its flags.
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

    /// Whether the trace is to name the data sources that did not answer.
    pub(crate) fn names_slow_ones(self) -> bool {
        matches!(self.flags() & 0xf, Self::STOP | Self::CLONE)
    }
}

/// What happens when a flush is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterFlush {
    Nothing,
    Reply(CallId),
    WriteFile,
    StopSession,
    /// Some of the session's buffers are to be copied.
    Clone(CloneId, BufferGroup),
}

/// The instances that a flush is for.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The youngest that there was.
    pub(crate) up_to: InstanceId,
    /// Those that write to these buffers; all, if there are none.
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
    /// Who did not answer yet. Each of them knows of this flush (`Producer::flushes`).
    pub(crate) waiting_for: BTreeSet<ProducerId>,
    /// All answered, or the time is over; what was not committed is being copied.
    pub(crate) is_over: bool,
    pub(crate) asked: Asked,
    pub(crate) reason: FlushReason,
    pub(crate) then: AfterFlush,
}

/// When data sources are asked to flush while the session runs; fixed at EnableTracing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushStrategy {
    Never,
    Periodic { period_ms: u32 },
    BeforeFileWrites,
}

/// The file a session streams into.
#[derive(Debug)]
pub(crate) struct OutputFile {
    pub(crate) id: FileId,
    /// The owner has not said yet whether it could be created.
    pub(crate) is_opening: bool,
    pub(crate) bytes_written: u64,
    /// Batches whose result is not known yet.
    pub(crate) writes: usize,
    /// The write pass under way.
    pub(crate) pass: Option<FilePass>,
}

/// A write pass: everything that is in the buffers, batch by batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilePass {
    /// The file is closed afterwards.
    pub(crate) is_final: bool,
    /// The last batch did not hold everything.
    pub(crate) has_more: bool,
}

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) consumer: Option<ClientId>,
    pub(crate) consumer_uid: i32,
    pub(crate) detach_key: Option<Vec<u8>>,
    pub(crate) config: TraceConfig,
    /// The config as it came, with everything the schema does not know.
    pub(crate) config_bytes: Vec<u8>,
    /// The same for each data source.
    pub(crate) source_configs: Vec<Vec<u8>>,
    /// The compiled `producer_name_regex_filter` of each data source.
    pub(crate) patterns: Vec<Vec<NamePattern>>,
    pub(crate) uuid: (i64, i64),
    pub(crate) state: State,
    /// BOOTTIME at which the state was entered.
    pub(crate) state_since_ns: u64,
    /// REALTIME of the start.
    pub(crate) started_realtime_ns: Option<u64>,
    pub(crate) buffers: Vec<BufferId>,
    /// What they can take of the memory; of a clone, what it has taken, with its sequence ids.
    pub(crate) buffer_bytes: u64,
    pub(crate) instances: Instances,
    /// The entries of the config by the names of their data sources.
    pub(crate) entries_by_name: BTreeMap<Name, Entries>,
    /// The configs of the instances of an entry, as far as they were made.
    pub(crate) instance_configs: BTreeMap<usize, Arc<[u8]>>,
    /// The producers that offer what the session asks for. Only these were ever told to write to
    /// its buffers.
    pub(crate) members: BTreeMap<ProducerId, Member>,
    /// What the members took of the instances that a session can have.
    pub(crate) instance_pool: Pool,
    pub(crate) flush_strategy: FlushStrategy,
    pub(crate) flushes: BTreeMap<u64, PendingFlush>,
    pub(crate) scrapes: Scrapes,
    pub(crate) file: Option<OutputFile>,
    /// What a consumer reads is to be had from the file.
    pub(crate) streams_to_file: bool,
    /// What everything that is read goes through; a reading pass takes it out and puts it back.
    pub(crate) trace_filter: Option<TraceFilter>,
    /// How a pass is compressed.
    pub(crate) codec: Option<Codec>,
    /// The text of the "tracing disabled" that is owed to the consumer once the file is complete.
    pub(crate) end_error: Option<String>,
    /// All instances were started at some time, and the trace says so.
    pub(crate) all_started_reported: bool,
    pub(crate) triggers: Triggers,
    /// What the service's process is to have while the session exists.
    pub(crate) boost: Option<PriorityBoost>,
    /// Set until the owner has done what the config needs.
    pub(crate) opening: Option<Opening>,
    /// Set if this is a snapshot of another session.
    pub(crate) clone: Option<CloneFacts>,
    /// What the next read has to say.
    pub(crate) news: News,
    pub(crate) sequence_ids: SequenceIds,
    pub(crate) invalid_packets: u64,
    /// Data source instances that were refused, because their producers had their share.
    pub(crate) instances_refused: u64,
    /// Triggers that acted, but are not told in the trace, and delayed ones that did not act.
    pub(crate) triggers_lost: u64,
    /// Events of other sessions that are not told in the trace.
    pub(crate) concurrent_lost: u64,
    pub(crate) flushes_requested: u64,
    pub(crate) flushes_succeeded: u64,
    pub(crate) flushes_failed: u64,
    pub(crate) final_flush_outcome: Option<FinalFlushOutcome>,
}

impl Session {
    pub(crate) fn flush_timeout_ms(&self) -> u32 {
        or_default(self.config.flush_timeout_ms, DEFAULT_FLUSH_TIMEOUT_MS)
    }

    pub(crate) fn stop_timeout_ms(&self) -> u32 {
        or_default(self.config.data_source_stop_timeout_ms, DEFAULT_STOP_TIMEOUT_MS)
    }

    pub(crate) fn file_write_period_ms(&self) -> u32 {
        file_write_period_ms(&self.config)
    }

    pub(crate) fn snapshot_interval_ms(&self) -> u32 {
        let builtin = self.config.builtin_data_sources.as_ref();
        or_default(builtin.and_then(|b| b.snapshot_interval_ms), DEFAULT_SNAPSHOT_INTERVAL_MS)
    }

    /// Whether one of the `disable_*` switches (or another bool) of `builtin_data_sources` is set.
    pub(crate) fn builtin(
        &self,
        switch: impl Fn(&esatto_schema::trace_config::BuiltinDataSource) -> Option<bool>,
    ) -> bool {
        self.config.builtin_data_sources.as_ref().and_then(switch).unwrap_or(false)
    }

    pub(crate) fn takes_snapshots(&self) -> bool {
        !self.builtin(|builtin| builtin.disable_clock_snapshotting)
    }

    pub(crate) fn unique_name(&self) -> &[u8] {
        self.config.unique_session_name.as_deref().unwrap_or_default()
    }

    /// Nothing more is recorded, and the file, if there is one, is complete.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Disabled | State::Cloned) && self.opening.is_none() && self.file.is_none()
    }

    /// Keeps the name of a data source that was refused for the next read, if there is room.
    pub(crate) fn record_refusal(&mut self, producer: &Name, data_source: &Name, now: &Now) {
        self.instances_refused += 1;
        let names = || (Arc::clone(producer), Arc::clone(data_source));
        let told = self.news.events.iter_mut().find_map(|(_, event)| match event {
            Event::RefusedDataSources(told) => Some(told),
            _ => None,
        });
        match told {
            Some(told) if told.len() < MAX_REFUSED_NAMES => told.push(names()),
            Some(_) => {}
            None => self.record(Event::RefusedDataSources(vec![names()]), false, now),
        }
    }

    /// Keeps an event for the next read, and a snapshot of the clocks with it.
    pub(crate) fn record(&mut self, event: Event, with_snapshot: bool, now: &Now) {
        if with_snapshot {
            self.snapshot(now);
        }
        self.news.add_event(event, now);
    }

    /// Keeps a snapshot of the clocks if there is something to learn from it.
    pub(crate) fn snapshot(&mut self, now: &Now) {
        if self.takes_snapshots() {
            self.news.add_snapshot(now);
        }
    }
}

pub(crate) fn or_default(value: Option<u32>, default: u32) -> u32 {
    value.filter(|&value| value != 0).unwrap_or(default)
}

fn file_write_period_ms(config: &TraceConfig) -> u32 {
    or_default(config.file_write_period_ms, DEFAULT_FILE_WRITE_PERIOD_MS).max(MIN_FILE_WRITE_PERIOD_MS)
}

impl FlushStrategy {
    pub(crate) fn of(config: &TraceConfig) -> Self {
        let by_config = match config.flush_period_ms {
            None | Some(0) => Self::Never,
            Some(period_ms) => Self::Periodic { period_ms },
        };
        if !config.write_into_file.unwrap_or(false) {
            return by_config;
        }
        match config.write_flush_mode {
            Some(WriteFlushMode::WRITE_FLUSH_DISABLED) => by_config,
            Some(WriteFlushMode::WRITE_FLUSH_ENABLED) => Self::BeforeFileWrites,
            _ if file_write_period_ms(config) > FILE_FLUSH_PERIOD_MS => Self::BeforeFileWrites,
            _ => Self::Periodic { period_ms: FILE_FLUSH_PERIOD_MS },
        }
    }
}

/// What the service itself has to say in the next read.
#[derive(Clone, Debug, Default)]
pub(crate) struct News {
    /// The snapshot taken at the start, until it is read.
    pub(crate) initial_snapshot: Option<Now>,
    /// Later ones, oldest first.
    pub(crate) snapshots: VecDeque<Now>,
    pub(crate) sync_marker: bool,
    pub(crate) stats: bool,
    /// Config, uuid, … have been emitted.
    pub(crate) first_read_done: bool,
    /// When and what.
    pub(crate) events: Vec<(u64, Event)>,
    /// When, and the encoded ConcurrentSessionEvent.
    pub(crate) concurrent: Vec<(u64, Name)>,
    /// What was said of other machines.
    pub(crate) told: Told,
}

impl News {
    fn add_snapshot(&mut self, now: &Now) {
        if self.snapshots.back().is_some_and(|last| !has_drifted(last, now)) {
            return;
        }
        if self.snapshots.len() == MAX_SNAPSHOTS {
            self.snapshots.pop_front();
        }
        self.snapshots.push_back(*now);
    }

    fn add_event(&mut self, event: Event, now: &Now) {
        let kind = core::mem::discriminant(&event);
        let max = match event {
            Event::FlushStarted | Event::AllDataSourcesFlushed | Event::LastFlushSlowDataSources(_) => MAX_FLUSH_EVENTS,
            _ => 1,
        };
        let is_same = |kept: &(u64, Event)| core::mem::discriminant(&kept.1) == kind;
        if self.events.iter().filter(|kept| is_same(kept)).count() >= max {
            if let Some(oldest) = self.events.iter().position(is_same) {
                self.events.remove(oldest);
            }
        }
        self.events.push((now.boottime_ns, event));
    }

    pub(crate) fn forget_slow_flush(&mut self) {
        self.events.retain(|(_, event)| !matches!(event, Event::LastFlushSlowDataSources(_)));
    }
}

/// Whether some clock advanced differently from BOOTTIME.
fn has_drifted(last: &Now, now: &Now) -> bool {
    let boot = now.boottime_ns.wrapping_sub(last.boottime_ns) as i64;
    let clocks = |at: &Now| {
        let tsc = at.tsc.unwrap_or(at.boottime_ns);
        [at.realtime_ns, at.realtime_coarse_ns, at.monotonic_ns, at.monotonic_coarse_ns, at.monotonic_raw_ns, tsc]
    };
    clocks(last)
        .iter()
        .zip(clocks(now))
        .any(|(&last, now)| (now.wrapping_sub(last) as i64).abs_diff(boot) >= SNAPSHOT_DRIFT_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_kept_when_a_clock_drifts() {
        let mut news = News::default();
        let first = Now { boottime_ns: 1_000_000_000, realtime_ns: 5_000_000_000, ..Now::default() };
        news.add_snapshot(&first);
        let mut later = first;
        for ns in [
            &mut later.boottime_ns,
            &mut later.realtime_ns,
            &mut later.realtime_coarse_ns,
            &mut later.monotonic_ns,
            &mut later.monotonic_coarse_ns,
            &mut later.monotonic_raw_ns,
        ] {
            *ns += 3_000_000_000;
        }
        later.realtime_ns += 9_999_999;
        news.add_snapshot(&later);
        assert_eq!(news.snapshots.len(), 1);
        later.realtime_ns += 1;
        news.add_snapshot(&later);
        assert_eq!(news.snapshots.len(), 2);
        for i in 0..100 {
            news.add_snapshot(&Now { boottime_ns: i * 1_000_000_000, ..Now::default() });
        }
        assert_eq!(news.snapshots.len(), MAX_SNAPSHOTS);
    }

    #[test]
    fn events_between_reads_are_bounded() {
        let mut news = News::default();
        for boottime_ns in 0..1000 {
            let now = Now { boottime_ns, ..Now::default() };
            news.add_event(Event::FlushStarted, &now);
            news.add_event(Event::TracingStarted, &now);
        }
        assert_eq!(news.events.len(), MAX_FLUSH_EVENTS + 1);
        assert_eq!(news.events.last(), Some(&(999, Event::TracingStarted)));
    }

    #[test]
    fn the_flush_strategy_follows_the_table() {
        let config = |file, flush_period_ms, file_write_period_ms, write_flush_mode| TraceConfig {
            write_into_file: Some(file),
            flush_period_ms,
            file_write_period_ms,
            write_flush_mode,
            ..TraceConfig::default()
        };
        let periodic = |period_ms| FlushStrategy::Periodic { period_ms };
        for (config, expected) in [
            (config(false, None, None, None), FlushStrategy::Never),
            (config(false, Some(70), None, None), periodic(70)),
            (config(true, Some(70), Some(5000), None), periodic(5000)),
            (config(true, Some(70), Some(5001), None), FlushStrategy::BeforeFileWrites),
            (config(true, None, Some(1), Some(WriteFlushMode::WRITE_FLUSH_ENABLED)), FlushStrategy::BeforeFileWrites),
            (config(true, Some(70), Some(1), Some(WriteFlushMode::WRITE_FLUSH_DISABLED)), periodic(70)),
        ] {
            assert_eq!(FlushStrategy::of(&config), expected);
        }
    }
}
