//! Sessions: each executes one TraceConfig (`docs/spec/service.md §4`).

pub(crate) mod activity;
pub(crate) mod admission;
mod buffer_memory;
pub(crate) mod clock_snapshots;
pub(crate) mod clone;
pub(crate) mod concurrent_session_events;
pub(crate) mod config_check;
pub(crate) mod flush;
pub(crate) mod flush_strategy;
pub(crate) mod freed;
pub(crate) mod guarded_names;
pub(crate) mod instance_config;
pub(crate) mod instances;
pub(crate) mod members;
pub(crate) mod pending_resources;
pub(crate) mod pending_scrapes;
pub(crate) mod phase;
pub(crate) mod producer_match;
pub(crate) mod read;
pub(crate) mod service_packets;
pub(crate) mod state;
pub(crate) mod statistics;
pub(crate) mod stop_timeout;
pub(crate) mod table;
pub(crate) mod trace_file;
pub(crate) mod trigger_history;
pub(crate) mod triggers;
pub(crate) mod unread_events;

use esatto_protozero::Owned;
use esatto_schema::TraceConfig;

use crate::api::{ClientId, Now, PriorityBoost};
use crate::client_text::{Name, quoted};
use crate::ids::{BufferId, SessionId};
use crate::read::Reading;
use activity::Recorded;
use clone::CloneFacts;
use flush::Flushes;
use flush_strategy::FlushStrategy;
use instances::Instances;
use members::{ConfigEntries, Members};
use pending_resources::PendingResources;
use pending_scrapes::Scrapes;
use phase::Phase;
use state::State;
use trace_file::{OutputFile, TraceFile};
use triggers::Triggers;
use unread_events::{Event, UnreadEvents};

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) link: ConsumerLink,
    /// User id of the consumer that made the session.
    pub(crate) consumer_uid: i32,
    /// Process of the consumer that has attached the session, if it is known.
    pub(crate) consumer_pid: Option<i32>,
    pub(crate) config: TraceConfig,
    /// The config as it came, with fields that the schema does not know.
    pub(crate) config_bytes: Vec<u8>,
    pub(crate) entries: ConfigEntries,
    pub(crate) uuid: (i64, i64),
    phase: Phase,
    /// BOOTTIME at which the session entered its state.
    pub(crate) state_since_ns: u64,
    /// REALTIME of the start.
    pub(crate) started_realtime_ns: Option<u64>,
    /// BOOTTIME of the start.
    pub(crate) started_boottime_ns: Option<u64>,
    /// The session is a copy of another one.
    pub(crate) is_clone: bool,
    pub(crate) buffers: Vec<BufferId>,
    /// Amounts of content that was moved out of the buffers.
    pub(crate) moved: Recorded,
    /// Bytes that are charged for the buffers: their capacity, or the bytes that a clone has taken,
    /// with its sequence ids.
    pub(crate) buffer_bytes: u64,
    pub(crate) instances: Instances,
    pub(crate) members: Members,
    pub(crate) flushes: Flushes,
    pub(crate) scrapes: Scrapes,
    pub(crate) file: TraceFile,
    pub(crate) reading: Reading,
    /// Error of the "tracing disabled" that the consumer gets when the file is complete.
    pub(crate) end_error: Option<String>,
    pub(crate) triggers: Triggers,
    /// Priority that the process of the service has while the session exists.
    pub(crate) boost: Option<PriorityBoost>,
    /// Number of the first producer that disconnected after the session began.
    pub(crate) departed_since: Option<u64>,
    /// Events that the next read tells.
    pub(crate) unread: UnreadEvents,
}

/// The consumer that a session belongs to.
#[derive(Debug)]
pub(crate) enum ConsumerLink {
    Attached(ClientId),
    /// A consumer of the same user can attach with this key.
    Detached {
        key: Vec<u8>,
    },
    Absent,
}

/// The parts of a session that differ from the start.
pub(crate) struct NewSession {
    pub(crate) id: SessionId,
    pub(crate) consumer: ClientId,
    pub(crate) consumer_uid: i32,
    pub(crate) config: TraceConfig,
    pub(crate) config_bytes: Vec<u8>,
    pub(crate) uuid: (i64, i64),
    pub(crate) phase: Phase,
    pub(crate) buffers: Vec<BufferId>,
    pub(crate) buffer_bytes: u64,
    pub(crate) file: Option<OutputFile>,
    pub(crate) reading: Reading,
}

impl Session {
    /// Creates a session that has recorded nothing.
    pub(crate) fn new(new: NewSession) -> Self {
        let is_clone = matches!(new.phase, Phase::Cloned(_));
        Self {
            id: new.id,
            link: ConsumerLink::Attached(new.consumer),
            consumer_uid: new.consumer_uid,
            consumer_pid: None,
            config: new.config,
            config_bytes: new.config_bytes,
            entries: ConfigEntries::default(),
            uuid: new.uuid,
            phase: new.phase,
            state_since_ns: 0,
            started_realtime_ns: None,
            started_boottime_ns: None,
            is_clone,
            buffers: new.buffers,
            moved: Recorded::default(),
            buffer_bytes: new.buffer_bytes,
            instances: Instances::default(),
            members: Members::default(),
            flushes: Flushes::new(FlushStrategy::Never),
            scrapes: Scrapes::default(),
            file: new.file.map_or(TraceFile::Unused, TraceFile::Open),
            reading: new.reading,
            end_error: None,
            triggers: Triggers::default(),
            boost: None,
            departed_since: None,
            unread: UnreadEvents::default(),
        }
    }

    pub(crate) fn state(&self) -> State {
        self.phase.state()
    }

    /// Returns what the session waits for before it is configured.
    pub(crate) fn opening(&self) -> Option<&PendingResources> {
        match &self.phase {
            Phase::Opening(pending) => Some(pending),
            _ => None,
        }
    }

    /// Returns what the session waits for before it is configured.
    pub(crate) fn opening_mut(&mut self) -> Option<&mut PendingResources> {
        match &mut self.phase {
            Phase::Opening(pending) => Some(pending),
            _ => None,
        }
    }

    /// Ends the wait for resources.
    pub(crate) fn finish_opening(&mut self) -> Option<PendingResources> {
        self.opening()?;
        match core::mem::replace(&mut self.phase, Phase::Disabled) {
            Phase::Opening(pending) => Some(pending),
            _ => None,
        }
    }

    /// Returns how the session was cloned, if it is a clone.
    pub(crate) fn clone_facts(&self) -> Option<&CloneFacts> {
        match &self.phase {
            Phase::Cloned(facts) => Some(facts),
            _ => None,
        }
    }

    /// Returns how the session was cloned, if it is a clone.
    pub(crate) fn clone_facts_mut(&mut self) -> Option<&mut CloneFacts> {
        match &mut self.phase {
            Phase::Cloned(facts) => Some(facts),
            _ => None,
        }
    }

    /// Returns the consumer, unless the session is detached or its consumer is gone.
    pub(crate) fn consumer(&self) -> Option<ClientId> {
        match self.link {
            ConsumerLink::Attached(client) => Some(client),
            _ => None,
        }
    }

    pub(crate) fn is_detached(&self) -> bool {
        self.detach_key().is_some()
    }

    /// Returns the key with which its user can attach the session.
    pub(crate) fn detach_key(&self) -> Option<&[u8]> {
        match &self.link {
            ConsumerLink::Detached { key } => Some(key),
            _ => None,
        }
    }

    pub(crate) fn is_detached_with(&self, wanted: &[u8]) -> bool {
        matches!(&self.link, ConsumerLink::Detached { key } if key == wanted)
    }

    /// Reads one of the `disable_*` switches, or another bool, of `builtin_data_sources`.
    pub(crate) fn builtin(
        &self,
        switch: impl Fn(&esatto_schema::trace_config::BuiltinDataSource) -> Option<bool>,
    ) -> bool {
        self.config.builtin_data_sources.as_ref().and_then(switch).unwrap_or(false)
    }

    pub(crate) fn unique_name(&self) -> &[u8] {
        self.config.unique_session_name.as_deref().unwrap_or_default()
    }

    /// Returns number and name of the session for the log.
    pub(crate) fn label(&self) -> String {
        match self.unique_name() {
            [] => format!("session {}", self.id.0),
            name => format!("session {} {}", self.id.0, quoted(name)),
        }
    }

    /// Changes the duration in the config. A trigger does this.
    pub(crate) fn set_duration(&mut self, duration_ms: u32) {
        self.config.duration_ms = Some(duration_ms);
        self.config_bytes = self.config.encode();
        // New instances get the new duration.
        self.entries.instance_configs.clear();
    }

    /// Tells whether the session records nothing more and its file, if it has one, is complete.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state(), State::Disabled | State::Cloned)
            && self.opening().is_none()
            && self.file.open().is_none()
    }

    /// Keeps the name of a refused data source for the next read, if there is room.
    pub(crate) fn record_refusal(&mut self, producer: &Name, data_source: &Name, now: &Now) {
        self.unread.lost.instances += 1;
        self.unread.add_refusal(producer, data_source, now);
    }

    /// Notes a producer that the session has not reached before its end.
    pub(crate) fn record_unreached(&mut self, producer: &Name, data_source: &Name, now: &Now) {
        self.members.unreached += 1;
        self.unread.add_unreached(producer, data_source, now);
    }

    /// Keeps an event for the next read, and a snapshot of the clocks with it.
    pub(crate) fn record(&mut self, event: Event, with_snapshot: bool, now: &Now) {
        if with_snapshot {
            self.snapshot(now);
        }
        self.unread.add_event(event, now);
    }
}

pub(crate) fn or_default(value: Option<u32>, default: u32) -> u32 {
    value.filter(|&value| value != 0).unwrap_or(default)
}
