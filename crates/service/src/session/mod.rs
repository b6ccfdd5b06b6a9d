//! Sessions: each executes one TraceConfig (`docs/spec/service.md §4`).

pub(crate) mod admission;
pub(crate) mod clone;
pub(crate) mod concurrent_sessions;
pub(crate) mod config_check;
pub(crate) mod flush;
pub(crate) mod freed;
pub(crate) mod guarded_names;
pub(crate) mod instances;
pub(crate) mod members;
pub(crate) mod news;
pub(crate) mod pending_resources;
pub(crate) mod read;
pub(crate) mod scrape;
pub(crate) mod service_packets;
pub(crate) mod state;
pub(crate) mod statistics;
pub(crate) mod table;
pub(crate) mod trace_file;
pub(crate) mod trigger_history;
pub(crate) mod triggers;

use std::collections::BTreeMap;
use std::sync::Arc;

use esatto_schema::TraceConfig;
use esatto_schema::trace_stats::FinalFlushOutcome;

use crate::api::{ClientId, Now, PriorityBoost};
use crate::client_text::Name;
use crate::fair_share::Pool;
use crate::ids::{BufferId, ProducerId, SessionId};
use crate::name_pattern::NamePattern;
use crate::read::compression::Codec;
use crate::read::sequence_ids::SequenceIds;
use crate::read::trace_filter::TraceFilter;
use clone::CloneFacts;
use flush::{FlushStrategy, PendingFlush};
use instances::Instances;
use members::{Entries, Member};
use news::{Event, News};
use pending_resources::PendingResources;
use scrape::Scrapes;
use state::State;
use trace_file::OutputFile;
use triggers::Triggers;

/// Milliseconds that data sources may take to acknowledge their stop.
const DEFAULT_STOP_TIMEOUT_MS: u32 = 5000;

const DEFAULT_SNAPSHOT_INTERVAL_MS: u32 = 10_000;

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
    pub(crate) opening: Option<PendingResources>,
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
        or_default(self.config.flush_timeout_ms, flush::DEFAULT_FLUSH_TIMEOUT_MS)
    }

    pub(crate) fn stop_timeout_ms(&self) -> u32 {
        or_default(self.config.data_source_stop_timeout_ms, DEFAULT_STOP_TIMEOUT_MS)
    }

    pub(crate) fn file_write_period_ms(&self) -> u32 {
        trace_file::write_period_ms(&self.config)
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
        self.news.add_refusal(producer, data_source, now);
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
