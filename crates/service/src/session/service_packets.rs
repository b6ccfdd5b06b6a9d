//! Packets that the service itself writes into a trace (`docs/spec/service.md §16`).

use esatto_protozero::{HeapBuffer, Owned};
use esatto_schema::{
    BuiltinClock, ClockSnapshotWriter, ENDED_DATA_SOURCES_FIELD, REFUSED_DATA_SOURCES_FIELD, RELAY_DISCONNECTED_FIELD,
    SHARED_MACHINE_ID_FIELD, SHARED_MACHINE_NAMES_FIELD, SLOW_STOPPING_DATA_SOURCES_FIELD, SystemInfo,
    TracePacketWriter, UNREACHED_DATA_SOURCES_FIELD, Utsname,
};

use super::read::ReadContext;
use super::statistics::MAX_STATS_PACKET_BYTES;
use crate::api::Now;
use crate::buffer::table::Buffers;
use crate::client_text::Name;
use crate::machines::Machines;
use crate::read::read_pass::OwnPackets;
use crate::session::Session;
use crate::session::triggers::Received;
use crate::session::unread_events::Event;

/// The sequence of the service's own packets.
const SERVICE_SEQUENCE_ID: u32 = 1;

/// Marker that lets a reader find packet boundaries in a damaged file.
const SYNC_MARKER: [u8; 16] =
    [0x82, 0x47, 0x7a, 0x76, 0xb2, 0x8d, 0x42, 0xba, 0x81, 0xdc, 0x33, 0x32, 0x6d, 0x57, 0xa0, 0x79];

/// Writer of the service's packets into a sink.
struct Emitter<'a> {
    uid: i32,
    pass: &'a mut dyn OwnPackets,
    /// The sink accepts no more packets.
    is_refused: bool,
}

impl Emitter<'_> {
    fn put(&mut self, mut write: impl FnMut(&mut TracePacketWriter<'_>)) {
        if !self.is_refused {
            self.is_refused = !self.pass.put_own(&packet(self.uid, Some(SERVICE_SEQUENCE_ID), &mut write));
        }
    }

    fn put_without_sequence(&mut self, mut write: impl FnMut(&mut TracePacketWriter<'_>)) {
        if !self.is_refused {
            self.is_refused = !self.pass.put_own(&packet(self.uid, None, &mut write));
        }
    }

    /// Puts a packet whose one field is encoded already, past the filter.
    fn put_unfiltered(&mut self, field: u32, content: &[u8]) {
        if !self.is_refused {
            let write = &mut |packet: &mut TracePacketWriter<'_>| packet.message().bytes(field, content);
            self.is_refused = !self.pass.put_unfiltered(&packet(self.uid, Some(SERVICE_SEQUENCE_ID), write));
        }
    }

    /// Puts a packet whose one field is encoded already.
    fn put_encoded(&mut self, field: u32, content: &[u8]) {
        self.put(|packet| packet.message().bytes(field, content));
    }
}

fn packet(uid: i32, sequence_id: Option<u32>, write: &mut dyn FnMut(&mut TracePacketWriter<'_>)) -> Vec<u8> {
    let mut buffer = HeapBuffer::new();
    let mut packet = TracePacketWriter::from(buffer.message());
    packet.trusted_uid(uid);
    if let Some(id) = sequence_id {
        packet.trusted_packet_sequence_id(id);
    }
    write(&mut packet);
    drop(packet);
    buffer.to_vec()
}

/// Sorts events that mostly are in order, with little code.
fn sort_by_time<T>(events: &mut [(u64, T)]) {
    for end in 1..events.len() {
        let mut at = end;
        while at > 0 && events[at - 1].0 > events[at].0 {
            events.swap(at - 1, at);
            at -= 1;
        }
    }
}

impl Session {
    /// Puts the packets that precede the buffers' contents. Returns false if the sink accepts no
    /// more.
    pub(super) fn put_service_packets(&mut self, pass: &mut dyn OwnPackets, from: &ReadContext<'_>) -> bool {
        let ReadContext { config, machines, buffers, now, .. } = from;
        let session = self;
        let mut emitter = Emitter { uid: config.uid, pass, is_refused: false };

        put_snapshots(session, &mut emitter);
        if core::mem::take(&mut session.unread.sync_marker) {
            emitter.put(|packet| {
                packet.synchronization_marker(&SYNC_MARKER);
            });
        }
        let is_first_read = !core::mem::replace(&mut session.unread.first_read_done, true);
        if is_first_read {
            if !session.builtin(|builtin| builtin.disable_trace_config) {
                emitter.put_encoded(33, &session.config_bytes);
            }
            put_clone_trigger(session, &mut emitter);
        }
        // Upstream hides triggers along with the config.
        put_triggers(session, &mut emitter);
        if is_first_read {
            let (msb, lsb) = session.uuid;
            emitter.put(|packet| {
                packet.trace_uuid().msb(msb).lsb(lsb);
            });
            put_provenance(session, buffers, &mut emitter, now);
        }
        if !session.builtin(|builtin| builtin.disable_system_info) {
            if is_first_read {
                let info = system_info(config);
                emitter.put_encoded(45, &info.encode());
            }
            for (machine, info) in machines.system_infos_for(&mut session.unread.told) {
                emitter.put(|packet| packet.machine_id(machine).message().bytes(45, info));
            }
        }
        put_events(session, &mut emitter);
        if !session.builtin(|builtin| builtin.disable_service_events) {
            for (machine, names) in machines.shared_ids_for(&mut session.unread.told) {
                emitter.put(|packet| {
                    let mut event = packet.timestamp(now.boottime_ns).service_event();
                    let message = event.message();
                    message.varint(SHARED_MACHINE_ID_FIELD, machine.into());
                    for name in names {
                        message.bytes(SHARED_MACHINE_NAMES_FIELD, name);
                    }
                });
            }
        }
        let mut concurrent = core::mem::take(&mut session.unread.concurrent);
        sort_by_time(&mut concurrent);
        for (boottime_ns, event) in concurrent {
            emitter.put(|packet| packet.timestamp(boottime_ns).message().bytes(134, &event));
        }
        if session.takes_snapshots() {
            put_remote_clocks(session, machines, &mut emitter);
        }
        !emitter.is_refused
    }

    /// Puts the packets that follow when the buffers are empty.
    pub(super) fn put_closing_packets(&mut self, pass: &mut dyn OwnPackets, from: &mut ReadContext<'_>) {
        let has_stats = core::mem::take(&mut self.unread.stats);
        let mut emitter = Emitter { uid: from.config.uid, pass, is_refused: false };
        if !self.builtin(|builtin| builtin.disable_service_events) {
            emitter.put(|packet| {
                packet.timestamp(from.now.boottime_ns).service_event().read_tracing_buffers_completed(true);
            });
        }
        if !has_stats {
            return;
        }
        // The statistics include the packet above.
        let filter_stats = emitter.pass.filter_stats().map(Box::new);
        let stats = self.encode_stats(filter_stats, MAX_STATS_PACKET_BYTES, &from.totals, from.buffers, from.work);
        emitter.put_unfiltered(35, &stats);
    }
}

fn put_snapshots(session: &mut Session, emitter: &mut Emitter<'_>) {
    let primary = session.config.builtin_data_sources.as_ref().and_then(|builtin| builtin.primary_trace_clock);
    let primary = primary.filter(|clock| clock.0 != 0).unwrap_or(BuiltinClock(6));
    let initial = session.unread.initial_snapshot.take();
    for snapshot in initial.into_iter().chain(session.unread.snapshots.drain(..)) {
        emitter.put(|packet| {
            let mut clocks = packet.clock_snapshot();
            put_clocks(&mut clocks, snapshot.builtin_clocks());
            clocks.primary_trace_clock(primary);
        });
    }
}

fn put_clocks(out: &mut ClockSnapshotWriter<'_>, clocks: impl IntoIterator<Item = (u32, u64)>) {
    for (id, timestamp) in clocks {
        out.clocks().clock_id(id).timestamp(timestamp);
    }
}

/// Puts the clock readings of other machines, once per machine.
fn put_remote_clocks(session: &mut Session, machines: &Machines, emitter: &mut Emitter<'_>) {
    for (id, machine) in machines.clocks_for(&mut session.unread.told) {
        emitter.put_without_sequence(|packet| {
            let mut sync = packet.machine_id(id).remote_clock_sync();
            for exchange in machine.exchanges() {
                let mut clocks = sync.synced_clocks();
                put_clocks(&mut clocks.client_clocks(), exchange.client.iter().copied());
                put_clocks(&mut clocks.host_clocks(), exchange.host.builtin_clocks());
            }
        });
    }
}

fn put_triggers(session: &mut Session, emitter: &mut Emitter<'_>) {
    for trigger in session.triggers.received.drain(..) {
        emitter.put(|packet| put_trigger(packet.timestamp(trigger.boottime_ns).trigger(), &trigger));
    }
}

fn put_clone_trigger(session: &Session, emitter: &mut Emitter<'_>) {
    if let Some(trigger) = session.clone_facts().and_then(|clone| clone.trigger.as_ref()) {
        emitter.put(|packet| put_trigger(packet.timestamp(trigger.boottime_ns).clone_snapshot_trigger(), trigger));
    }
}

fn put_trigger(mut out: esatto_schema::TriggerWriter<'_>, trigger: &Received) {
    out.trigger_name(&trigger.name).producer_name(&trigger.producer_name);
    out.trusted_producer_uid(trigger.producer_uid).stop_delay_ms(trigger.stop_delay_ms);
}

/// Puts the producer of each packet sequence that the buffers know.
fn put_provenance(session: &mut Session, buffers: &Buffers, emitter: &mut Emitter<'_>, now: &Now) {
    emitter.put(|packet| {
        packet.timestamp(now.boottime_ns);
        let mut provenance = packet.trace_provenance();
        for buffer in session.buffers.iter().filter_map(|id| buffers.get(*id)) {
            let mut entry = provenance.buffers();
            for writer in buffer.writers() {
                let id = session.reading.sequence_ids.of(&writer.identity, writer.producer.0, writer.writer.0);
                entry.sequences().id(id).producer_id(writer.producer.0.into());
            }
        }
    });
}

fn put_events(session: &mut Session, emitter: &mut Emitter<'_>) {
    let mut events = core::mem::take(&mut session.unread.events);
    if session.builtin(|builtin| builtin.disable_service_events) {
        return;
    }
    sort_by_time(&mut events);
    for (boottime_ns, event) in events {
        emitter.put(|packet| {
            packet.timestamp(boottime_ns);
            let mut out = packet.service_event();
            let names = |mut out: esatto_schema::tracing_service_event::DataSourcesWriter<'_>, names: &[_]| {
                for (producer, data_source) in names {
                    let (producer, data_source): (&Name, &Name) = (producer, data_source);
                    out.data_source().producer_name(producer).data_source_name(data_source);
                }
            };
            match &event {
                Event::AllDataSourcesStarted => drop(out.all_data_sources_started(true)),
                Event::TracingStarted => drop(out.tracing_started(true)),
                Event::AllDataSourcesFlushed => drop(out.all_data_sources_flushed(true)),
                Event::TracingDisabled => drop(out.tracing_disabled(true)),
                Event::FlushStarted => drop(out.flush_started(true)),
                Event::CloneStarted => drop(out.clone_started(true)),
                Event::BufferCloned(index) => drop(out.buffer_cloned(*index)),
                Event::SlowStartingDataSources(slow) => names(out.slow_starting_data_sources(), slow),
                Event::RefusedDataSources(refused) => {
                    names(out.message().begin(REFUSED_DATA_SOURCES_FIELD).into(), refused);
                }
                Event::UnreachedDataSources(unreached) => {
                    names(out.message().begin(UNREACHED_DATA_SOURCES_FIELD).into(), unreached);
                }
                Event::LastFlushSlowDataSources(slow) => names(out.last_flush_slow_data_sources(), slow),
                Event::SlowStoppingDataSources(slow) => {
                    names(out.message().begin(SLOW_STOPPING_DATA_SOURCES_FIELD).into(), slow);
                }
                Event::EndedDataSources(ended) => {
                    names(out.message().begin(ENDED_DATA_SOURCES_FIELD).into(), ended);
                }
                Event::RelayDisconnected(machine) => {
                    out.message().varint(RELAY_DISCONNECTED_FIELD, (*machine).into());
                }
            }
        });
    }
}

fn system_info(config: &crate::api::ServiceConfig) -> SystemInfo {
    let facts = &config.system;
    let text = |text: &str| (!text.is_empty()).then(|| text.into());
    SystemInfo {
        utsname: Some(Utsname {
            sysname: text(&facts.sysname),
            version: text(&facts.version),
            release: text(&facts.release),
            machine: text(&facts.machine),
            ..Utsname::default()
        }),
        tracing_service_version: text(&config.version),
        page_size: facts.page_size_bytes,
        timezone_off_mins: facts.timezone_offset_minutes,
        num_cpus: facts.cpus,
        system_ram_bytes: facts.ram_bytes,
        ..SystemInfo::default()
    }
}
