//! Packets in which the service describes itself and the recording (`docs/spec/service.md` §16,
//! §17).

use std::collections::BTreeMap;

use esatto_protozero::Fields;
use esatto_schema::{
    DATA_SOURCE_PROBLEM_FIELD, ENDED_DATA_SOURCES_FIELD, GAPS_BETWEEN_PACKETS_FIELD, PACKETS_AFTER_LOSS_FIELD,
    PATCHES_OF_OVERWRITTEN_FIELD, REFUSED_DATA_SOURCES_FIELD, RELAY_DISCONNECTED_FIELD, SHARED_MACHINE_ID_FIELD,
    SHARED_MACHINE_NAMES_FIELD, SLOW_STOPPING_DATA_SOURCES_FIELD, TRIGGERS_DELAYED_FIELD, TRIGGERS_LIMITED_FIELD,
    UNREACHED_DATA_SOURCES_FIELD, data_source_problem, system_info, trace_packet::field as packet_field, trace_stats,
    trace_uuid, tracing_service_event, trigger, utsname,
};

use crate::field_names;
use crate::session_progress::SessionProgress;

/// Buffers whose counts are read. A session of the service has at most 128.
const MAX_BUFFERS: usize = 1024;
/// Counts of a buffer that are read. The schema names fewer.
const MAX_COUNTS_PER_BUFFER: usize = 128;

/// Names of the counts that only Esatto's service has.
pub(crate) const GAPS_BETWEEN_PACKETS: &str = "gaps_between_packets";
const PACKETS_AFTER_LOSS: &str = "packets_after_loss";
pub(crate) const PATCHES_OF_OVERWRITTEN: &str = "patches_of_overwritten";
/// The event after each reading of all buffers.
pub(crate) const READ_COMPLETED: &str = "read_tracing_buffers_completed";
/// The event that names programs that did not stop in time.
pub(crate) const SLOW_STOPPING: &str = "slow_stopping_data_sources";
/// The event that names data sources of a machine whose program disconnected while they recorded.
pub(crate) const ENDED_DATA_SOURCES: &str = "ended_data_sources";
/// The event that names a machine whose relay disconnected.
pub(crate) const RELAY_DISCONNECTED: &str = "relay_disconnected";
/// Name of the event that names programs which ended before the recording reached them.
pub(crate) const UNREACHED: &str = "unreached_data_sources";
/// The event that names a machine id that two relays have.
pub(crate) const SHARED_MACHINE_ID: &str = "shared_machine_id";

/// Counts of the service for one buffer, by their names in the schema. See `docs/spec/service.md`
/// §17.
pub type BufferStats = BTreeMap<String, u64>;

/// Counts of the service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceStats {
    /// Counts of each buffer, in the order of the config.
    pub buffers: Vec<BufferStats>,
    /// Chunks for a buffer that does not exist, or that they must not write to. They are of no
    /// session, for example left over from the one before. The service counts them since it
    /// started.
    pub chunks_discarded: u64,
    /// Patches for chunks that no longer exist. The service counts those of all sessions since it
    /// started.
    pub patches_discarded: u64,
    /// Packets that were malformed or had fields reserved for the service.
    pub invalid_packets: u64,
    /// Requested flushes.
    pub flushes_requested: u64,
    /// Flushes that all data sources answered.
    pub flushes_succeeded: u64,
    /// Flushes that some data source did not answer.
    pub flushes_failed: u64,
    /// Triggers that did not act because of `max_per_24_h`; only Esatto's service counts them.
    pub triggers_limited: u64,
    /// Triggers for clones whose delay is not over; only Esatto's service counts them.
    pub triggers_delayed: u64,
    /// Result of the last flush; `None` if there was none.
    pub final_flush_succeeded: Option<bool>,
}

impl TraceStats {
    /// Reads the message, as the trace has it, or the service's reply to a query.
    pub fn decode(message: &[u8]) -> Self {
        use trace_stats::field;
        let mut stats = Self::default();
        for f in Fields::new(message) {
            match f.id {
                field::BUFFER_STATS if stats.buffers.len() < MAX_BUFFERS => {
                    let fields = Fields::new(f.as_bytes()).take(MAX_COUNTS_PER_BUFFER);
                    stats.buffers.push(fields.map(|f| (buffer_count(f.id), f.as_u64())).collect());
                }
                field::CHUNKS_DISCARDED => stats.chunks_discarded = f.as_u64(),
                field::PATCHES_DISCARDED => stats.patches_discarded = f.as_u64(),
                field::INVALID_PACKETS => stats.invalid_packets = f.as_u64(),
                field::FLUSHES_REQUESTED => stats.flushes_requested = f.as_u64(),
                field::FLUSHES_SUCCEEDED => stats.flushes_succeeded = f.as_u64(),
                field::FLUSHES_FAILED => stats.flushes_failed = f.as_u64(),
                TRIGGERS_LIMITED_FIELD => stats.triggers_limited = f.as_u64(),
                TRIGGERS_DELAYED_FIELD => stats.triggers_delayed = f.as_u64(),
                field::FINAL_FLUSH_OUTCOME => {
                    stats.final_flush_succeeded = match f.as_i32() {
                        1 => Some(true),
                        2 => Some(false),
                        _ => None,
                    };
                }
                _ => {}
            }
        }
        stats
    }
}

/// Returns the name of a count.
fn buffer_count(field: u32) -> String {
    match field {
        GAPS_BETWEEN_PACKETS_FIELD => GAPS_BETWEEN_PACKETS.to_owned(),
        PACKETS_AFTER_LOSS_FIELD => PACKETS_AFTER_LOSS.to_owned(),
        PATCHES_OF_OVERWRITTEN_FIELD => PATCHES_OF_OVERWRITTEN.to_owned(),
        field => field_names::name(field_names::buffer_stats(), field),
    }
}

/// The machine and the service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SystemInfo {
    /// The kernel's name, such as `Linux`.
    pub sysname: String,
    /// The kernel's release.
    pub release: String,
    /// The kernel's build.
    pub version: String,
    /// The instruction set.
    pub machine: String,
    /// The name that the machine has in configs; only relays tell it.
    pub machine_name: String,
    /// The service's own version.
    pub service_version: String,
    /// Configured CPUs.
    pub num_cpus: Option<u32>,
    /// Bytes in a page of memory.
    pub page_size: Option<u32>,
    /// Bytes of memory.
    pub ram_bytes: Option<u64>,
    /// Minutes by which local time is ahead of UTC.
    pub timezone_off_mins: Option<i32>,
}

/// An event in the life of the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceEvent {
    /// Its name in the schema, such as `tracing_started`, or the name of a trigger.
    pub name: String,
    /// Its time in nanoseconds of the trace clock, if the packet has one.
    pub ts_ns: Option<i64>,
    /// The data sources that the event names: those that did not answer in time, or were refused.
    pub data_sources: Vec<NamedDataSource>,
    /// The id of the machine that the event is about.
    pub machine_id: Option<u32>,
    /// The machine names of the relays that share this id.
    pub machine_names: Vec<String>,
}

impl ServiceEvent {
    /// Returns whether the event tells that data is or may be missing: it names data sources or a
    /// machine.
    pub(crate) fn is_failure(&self) -> bool {
        !self.data_sources.is_empty() || self.machine_id.is_some()
    }
}

/// A data source that an event of the service names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedDataSource {
    /// The name of its producer, usually the program's name.
    pub producer: String,
    /// Its own name.
    pub name: String,
}

/// A data source that did not record, or not everything, and said so in the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataSourceProblem {
    /// The name of the data source.
    pub data_source: String,
    /// The failure, its reason, and the remedy.
    pub reason: String,
}

/// Problems of data sources that are read. A producer writes one for each instance.
const MAX_DATA_SOURCE_PROBLEMS: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Meta {
    pub(crate) config: Option<Vec<u8>>,
    pub(crate) uuid: Option<(u64, u64)>,
    pub(crate) system: Option<SystemInfo>,
    pub(crate) stats: Option<TraceStats>,
    /// The first statistics of the trace.
    pub(crate) first_stats: Option<TraceStats>,
    pub(crate) events: Vec<ServiceEvent>,
    pub(crate) triggers: Vec<ServiceEvent>,
    pub(crate) data_source_problems: Vec<DataSourceProblem>,
    pub(crate) synchronization_markers: u64,
    pub(crate) progress: SessionProgress,
}

impl Meta {
    pub(crate) fn add(&mut self, id: u32, payload: &[u8], ts_ns: Option<i64>) {
        match id {
            packet_field::TRACE_CONFIG => self.config = Some(payload.to_vec()),
            packet_field::TRACE_UUID => {
                let part = |id| Fields::new(payload).filter(|f| f.id == id).last().map_or(0, |f| f.as_u64());
                self.uuid = Some((part(trace_uuid::field::MSB), part(trace_uuid::field::LSB)));
            }
            packet_field::SYSTEM_INFO => self.system = Some(read_system_info(payload)),
            packet_field::TRACE_STATS => {
                let stats = TraceStats::decode(payload);
                self.first_stats.get_or_insert_with(|| stats.clone());
                self.stats = Some(stats);
            }
            DATA_SOURCE_PROBLEM_FIELD if self.data_source_problems.len() < MAX_DATA_SOURCE_PROBLEMS => {
                let part =
                    |id| Fields::new(payload).find(|f| f.id == id).map_or_else(String::new, |f| text(f.as_bytes()));
                let data_source = part(data_source_problem::DATA_SOURCE_NAME);
                let problem = DataSourceProblem { data_source, reason: part(data_source_problem::REASON) };
                if !self.data_source_problems.contains(&problem) {
                    self.data_source_problems.push(problem);
                }
            }
            packet_field::SYNCHRONIZATION_MARKER => self.synchronization_markers += 1,
            packet_field::SERVICE_EVENT => {
                for f in Fields::new(payload) {
                    if f.id == SHARED_MACHINE_NAMES_FIELD {
                        // It follows the event to which it belongs.
                        let event = self.events.last_mut().filter(|event| event.name == SHARED_MACHINE_ID);
                        if let Some(event) = event.filter(|event| event.machine_names.len() < MAX_MACHINE_NAMES) {
                            event.machine_names.push(text(f.as_bytes()));
                        }
                        continue;
                    }
                    self.progress.add_event(f.id);
                    let data_sources = read_data_sources(f.as_bytes());
                    let is_about_machine = [SHARED_MACHINE_ID_FIELD, RELAY_DISCONNECTED_FIELD].contains(&f.id);
                    let machine_id = is_about_machine.then(|| f.as_u32());
                    let machine_names = Vec::new();
                    let name = event_name(f.id);
                    self.events.push(ServiceEvent { name, ts_ns, data_sources, machine_id, machine_names });
                }
            }
            packet_field::TRIGGER | packet_field::CLONE_SNAPSHOT_TRIGGER => {
                let name = Fields::new(payload).find(|f| f.id == trigger::field::TRIGGER_NAME);
                let name = name.map_or_else(String::new, |f| String::from_utf8_lossy(f.as_bytes()).into_owned());
                let (data_sources, machine_names) = (Vec::new(), Vec::new());
                self.triggers.push(ServiceEvent { name, ts_ns, data_sources, machine_id: None, machine_names });
            }
            _ => {}
        }
    }
}

/// Returns the name of an event of the service.
fn event_name(id: u32) -> String {
    match id {
        ENDED_DATA_SOURCES_FIELD => ENDED_DATA_SOURCES.to_owned(),
        REFUSED_DATA_SOURCES_FIELD => "refused_data_sources".to_owned(),
        RELAY_DISCONNECTED_FIELD => RELAY_DISCONNECTED.to_owned(),
        SHARED_MACHINE_ID_FIELD => SHARED_MACHINE_ID.to_owned(),
        SLOW_STOPPING_DATA_SOURCES_FIELD => SLOW_STOPPING.to_owned(),
        UNREACHED_DATA_SOURCES_FIELD => UNREACHED.to_owned(),
        id => field_names::name(field_names::service_event(), id),
    }
}

/// Data sources that are read from an event. The service names at most 32.
const MAX_DATA_SOURCES: usize = 64;
/// Names of relays that are read from an event. The service names two.
const MAX_MACHINE_NAMES: usize = 2;

/// Reads the content of an event that names data sources. Other events have none.
fn read_data_sources(event: &[u8]) -> Vec<NamedDataSource> {
    use tracing_service_event::{data_sources, data_sources::data_source};
    let sources = Fields::new(event).filter(|f| f.id == data_sources::field::DATA_SOURCE);
    let source = |source: &[u8]| {
        let text =
            |id| Fields::new(source).filter(|f| f.id == id).last().map_or_else(String::new, |f| text(f.as_bytes()));
        NamedDataSource {
            producer: text(data_source::field::PRODUCER_NAME),
            name: text(data_source::field::DATA_SOURCE_NAME),
        }
    };
    sources.take(MAX_DATA_SOURCES).map(|f| source(f.as_bytes())).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn read_system_info(bytes: &[u8]) -> SystemInfo {
    use system_info::field;
    let mut info = SystemInfo::default();
    for f in Fields::new(bytes) {
        match f.id {
            field::TRACING_SERVICE_VERSION => info.service_version = text(f.as_bytes()),
            field::MACHINE_NAME => info.machine_name = text(f.as_bytes()),
            field::NUM_CPUS => info.num_cpus = Some(f.as_u32()),
            field::PAGE_SIZE => info.page_size = Some(f.as_u32()),
            field::SYSTEM_RAM_BYTES => info.ram_bytes = Some(f.as_u64()),
            field::TIMEZONE_OFF_MINS => info.timezone_off_mins = Some(f.as_i32()),
            field::UTSNAME => {
                for f in Fields::new(f.as_bytes()) {
                    match f.id {
                        utsname::field::SYSNAME => info.sysname = text(f.as_bytes()),
                        utsname::field::RELEASE => info.release = text(f.as_bytes()),
                        utsname::field::VERSION => info.version = text(f.as_bytes()),
                        utsname::field::MACHINE => info.machine = text(f.as_bytes()),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    info
}
