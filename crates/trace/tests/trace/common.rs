use std::path::PathBuf;

use esatto_protozero::{HeapBuffer, Message};
use esatto_schema::{TrackEventWriter, track_event::Type};
use esatto_trace::{Summary, Trace};

/// Returns the bytes of `tests/traces/official-v56-NAME.pftrace`.
pub(crate) fn official(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces");
    let file = folder.join(format!("official-v56-{name}.pftrace"));
    std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Builder of traces for tests.
#[derive(Default)]
pub(crate) struct Maker(pub(crate) Vec<u8>);

pub(crate) const SEQUENCE: u32 = 8;
const TIMESTAMP: u32 = 8;
const TRACK_EVENT: u32 = 11;
const TRACK_DESCRIPTOR: u32 = 60;
const SEQUENCE_ID: u32 = 10;

impl Maker {
    /// Adds a packet on sequence [`SEQUENCE`].
    pub(crate) fn packet(mut self, fill: impl FnOnce(&mut Message<'_>)) -> Self {
        let mut buffer = HeapBuffer::new();
        let mut trace = buffer.message();
        let mut packet = trace.begin(1);
        packet.varint(SEQUENCE_ID, u64::from(SEQUENCE));
        fill(&mut packet);
        drop(packet);
        drop(trace);
        self.0.extend(buffer.to_vec());
        self
    }

    /// Adds a track descriptor, with fields after the uuid.
    pub(crate) fn track(self, uuid: u64, fill: impl FnOnce(&mut Message<'_>)) -> Self {
        self.packet(|packet| {
            let mut descriptor = packet.begin(TRACK_DESCRIPTOR);
            descriptor.varint(1, uuid);
            fill(&mut descriptor);
        })
    }

    /// Adds a plain track.
    pub(crate) fn named(self, uuid: u64, name: &str, parent: u64) -> Self {
        self.track(uuid, |track| {
            track.string(2, name);
            if parent != 0 {
                track.varint(5, parent);
            }
        })
    }

    pub(crate) fn process(self, uuid: u64, pid: i64) -> Self {
        self.track(uuid, |track| track.begin(3).int(1, pid))
    }

    pub(crate) fn thread(self, uuid: u64, pid: i64, tid: i64, parent: u64) -> Self {
        self.track(uuid, |track| {
            if parent != 0 {
                track.varint(5, parent);
            }
            let mut thread = track.begin(4);
            thread.int(1, pid);
            thread.int(2, tid);
        })
    }

    /// Adds an event with further fields.
    pub(crate) fn event(self, ts: u64, kind: Type, track: u64, fill: impl FnOnce(&mut TrackEventWriter<'_>)) -> Self {
        self.packet(|packet| {
            packet.varint(TIMESTAMP, ts);
            let mut event = TrackEventWriter::from(packet.begin(TRACK_EVENT));
            event.r#type(kind).track_uuid(track);
            fill(&mut event);
        })
    }

    pub(crate) fn begin(self, ts: u64, track: u64, name: &str) -> Self {
        self.event(ts, Type::TYPE_SLICE_BEGIN, track, |event| _ = event.name(name))
    }

    pub(crate) fn end(self, ts: u64, track: u64) -> Self {
        self.event(ts, Type::TYPE_SLICE_END, track, |_| {})
    }

    pub(crate) fn instant(self, ts: u64, track: u64, name: &str) -> Self {
        self.event(ts, Type::TYPE_INSTANT, track, |event| _ = event.name(name))
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary::read(&self.0[..])
    }

    pub(crate) fn trace(&self) -> Trace {
        Trace::read(&self.0[..])
    }
}
