//! Conversations that Perfetto's programs had, played to our service: the trace must hold the same
//! packets.
//!
//! Lines of `<connection>.frames.tsv` say when which bytes were sent and what shared memory held
//! just before. The session is enabled when the real service sent its first command for it.

use esatto_ports::Rpc as _;
use esatto_ports::{consumer_port, producer_port, relay_port};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use esatto_protozero::{Fields, Owned};
use esatto_schema::{IPCFrame, TracePacketReader, TraceReader};
use esatto_service::{
    CallId, ChunkHeader, ClientId, Input, MemoryKind, Peer, ProducerCall, RelayCall, ScrapedChunk, SharedBuffer,
};
use esatto_shm::abi::PageSize;
use esatto_shm::{PrivateRegion, ServiceRegion};

use crate::world::World;

/// Shared memory whose content is set to that of a recorded snapshot.
#[derive(Clone, Debug)]
struct Replayed(Arc<Mutex<ServiceRegion>>);

impl Replayed {
    fn new(size: usize, page_size: usize) -> Self {
        Self(Arc::new(Mutex::new(region(&vec![0; size], page_size))))
    }

    fn set(&self, snapshot: &[u8]) {
        let mut held = self.0.lock().unwrap();
        let mut bytes = vec![0; held.size()];
        bytes[..snapshot.len()].copy_from_slice(snapshot);
        *held = region(&bytes, held.page_size().bytes());
    }
}

fn region(bytes: &[u8], page_size: usize) -> ServiceRegion {
    ServiceRegion::new(Arc::new(PrivateRegion::from_bytes(bytes)), PageSize::new(page_size).unwrap()).unwrap()
}

impl SharedBuffer for Replayed {
    fn size_bytes(&self) -> usize {
        self.0.lock().unwrap().size_bytes()
    }

    fn page_size_bytes(&self) -> usize {
        self.0.lock().unwrap().page_size_bytes()
    }

    fn take_chunk(&mut self, page: u32, chunk: u32, payload: &mut Vec<u8>) -> Option<ChunkHeader> {
        SharedBuffer::take_chunk(&mut *self.0.lock().unwrap(), page, chunk, payload)
    }

    fn scrape(&mut self, payload: &mut Vec<u8>, each: &mut dyn FnMut(ScrapedChunk<'_>)) {
        SharedBuffer::scrape(&mut *self.0.lock().unwrap(), payload, each);
    }
}

/// A line of a `frames.tsv`.
#[derive(Debug)]
struct Line {
    t_ms: u64,
    from_client: bool,
    offset: usize,
    len: usize,
    kind: String,
    method: String,
    fd: String,
    snapshot: String,
    content: String,
}

fn lines(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap();
    let parse = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        Line {
            t_ms: columns[0].parse::<f64>().unwrap() as u64,
            from_client: columns[1] == "c2s",
            offset: columns[2].parse().unwrap(),
            len: columns[3].parse().unwrap(),
            kind: columns[5].to_owned(),
            method: columns[6].to_owned(),
            fd: columns[7].to_owned(),
            snapshot: columns[8].to_owned(),
            content: columns[9..].join("\t"),
        }
    };
    text.lines().skip(1).map(parse).collect()
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/captures").join(name)
}

fn arguments(bytes: &[u8], line: &Line) -> Vec<u8> {
    let frame = IPCFrame::decode(&bytes[line.offset + 4..line.offset + line.len]).unwrap();
    frame.msg_invoke_method.unwrap().args_proto.unwrap_or_default()
}

/// Plays a capture and reads the trace.
fn replay(name: &str) -> Vec<Vec<u8>> {
    let folder = folder(name);
    let bytes = std::fs::read(folder.join("producer.c2s.bin")).unwrap();
    let lines = lines(&folder.join("producer.frames.tsv"));
    let mut world = World::new();
    let producer = ClientId(1_000_000);
    let is_remote = name.starts_with("remote") || name == "relay";
    let memory = if is_remote { MemoryKind::Emulated } else { MemoryKind::Shared };
    let machine_id = if name == "relay" { play_relay(&mut world, &folder) } else { 0 };
    world.feed(Input::ProducerConnected { client: producer, peer: Peer { uid: 1, pid: Some(2), machine_id }, memory });
    let mut replayed: Option<Replayed> = None;
    let mut session = None;
    let start_ms = world.now.monotonic_ns / 1_000_000;

    for (index, line) in lines.iter().enumerate() {
        // The service scrapes the chunks that the client commits next.
        let next_snapshot = lines[index..].iter().find(|line| line.method == "CommitData" && !line.snapshot.is_empty());
        if let (Some(replayed), Some(next)) = (&replayed, next_snapshot) {
            if session.is_some() {
                replayed.set(&std::fs::read(folder.join(&next.snapshot)).unwrap());
            }
        }
        let now_ms = world.now.monotonic_ns / 1_000_000 - start_ms;
        world.advance_ms(line.t_ms.saturating_sub(now_ms));
        if !line.from_client {
            if line.content.contains("setup_data_source") && session.is_none() {
                session = Some(enable(&mut world, &folder));
                if memory == MemoryKind::Shared && replayed.is_none() {
                    panic!("{name}: the memory is made by the world");
                }
            }
            // The world makes memory without bytes; ours comes first.
            if line.content.contains("setup_tracing")
                && session.is_none()
                && !line.content.contains("setup_tracing { }")
            {
                let (size, page_size) = sizes(line, &lines);
                replayed = (!is_remote).then(|| Replayed::new(size, page_size));
                if let Some(replayed) = &replayed {
                    world.prepared = Some(Box::new(replayed.clone()));
                }
                session = Some(enable(&mut world, &folder));
            }
            continue;
        }
        if line.kind != "invoke_method" {
            continue;
        }
        let request = arguments(&bytes, line);
        let id = producer_port::SERVICE.id_of(&line.method).unwrap();
        let method = ProducerCall::read(id, &request).unwrap();
        let mut offered: Option<Box<dyn SharedBuffer>> = None;
        if let ProducerCall::InitializeConnection(request) = &method {
            if !line.fd.is_empty() {
                let size = request.shared_memory_size_hint_bytes().unwrap() as usize;
                let page_size = request.shared_memory_page_size_hint_bytes().unwrap() as usize;
                let memory = Replayed::new(size, page_size);
                replayed = Some(memory.clone());
                offered = Some(Box::new(memory));
            }
        }
        if let (Some(replayed), false) = (&replayed, line.snapshot.is_empty()) {
            replayed.set(&std::fs::read(folder.join(&line.snapshot)).unwrap());
        }
        let call = CallId { client: producer, request: world.id() };
        world.feed(Input::ProducerCall { call, method, offered });
        assert!(!world.rejected.contains(&call), "{name}: {} is rejected", line.method);
    }
    world.advance_ms(20_000);
    let (consumer, end) = session.expect("a session");
    assert_eq!(world.ended(end).as_deref(), Some(""), "{name}: {:?}", world.warnings);
    world.read(consumer)
}

/// Plays the control connection of a relay; the machine it is on.
fn play_relay(world: &mut World, folder: &Path) -> u32 {
    let bytes = std::fs::read(folder.join("control.c2s.bin")).unwrap();
    let (client, machine_id) = (ClientId(2_000_000), 1_011_363_979);
    world.feed(Input::RelayConnected { client, peer: Peer { uid: 0, pid: Some(9001), machine_id } });
    world.feed(Input::MachineNamed { client, name: b"guest1" });
    for line in lines(&folder.join("control.frames.tsv")).iter().filter(|line| line.from_client) {
        let Some(id) = relay_port::SERVICE.id_of(&line.method) else { continue };
        let call = CallId { client, request: world.id() };
        let request = arguments(&bytes, line);
        world.feed(Input::RelayCall { call, method: RelayCall::read(id, &request).unwrap() });
        assert!(world.is_answered(call));
    }
    machine_id
}

fn enable(world: &mut World, folder: &Path) -> (ClientId, CallId) {
    let bytes = std::fs::read(folder.join("consumer.c2s.bin")).unwrap();
    let lines = lines(&folder.join("consumer.frames.tsv"));
    let line = lines.iter().find(|line| line.from_client && line.method == "EnableTracing").unwrap();
    let consumer = world.consumer();
    let call = world.consumer_call(consumer, consumer_port::method::EnableTracing::METHOD, &arguments(&bytes, line));
    (consumer, call)
}

/// Sizes of the memory in this setup_tracing: from the descriptor's text and the announced page
/// size.
fn sizes(line: &Line, lines: &[Line]) -> (usize, usize) {
    let number = |text: &str, before: &str| {
        let digits = text.split(before).nth(1)?;
        digits.split(|c: char| !c.is_ascii_digit()).next()?.parse::<usize>().ok()
    };
    let page_size = number(&line.content, "shared_buffer_page_size_kb: ").unwrap() * 1024;
    let hint = lines.iter().find_map(|line| number(&line.content, "shared_memory_size_hint_bytes: "));
    (number(&line.fd, "size=").or(hint).unwrap(), page_size)
}

/// The packets of producers, per sequence: the producer's own fields, and the loss mark.
fn packets_by_sequence(packets: &[Vec<u8>]) -> Vec<Vec<(Vec<u8>, u32)>> {
    let stamped = [3, 10, 42, 79, 98];
    let mut sequences: BTreeMap<u32, Vec<(Vec<u8>, u32)>> = BTreeMap::new();
    for packet in packets {
        let reader = TracePacketReader::parse(packet).unwrap();
        let sequence = reader.trusted_packet_sequence_id().unwrap_or(1);
        if sequence == 1 {
            continue;
        }
        let mut own = Vec::new();
        let mut fields = Fields::new(packet);
        while let Some((field, bytes)) = fields.next_with_bytes() {
            if !stamped.contains(&field.id) {
                own.extend_from_slice(bytes);
            }
        }
        sequences.entry(sequence).or_default().push((own, reader.previous_packet_dropped().unwrap_or(0)));
    }
    let mut sequences: Vec<_> = sequences.into_values().collect();
    sequences.sort();
    sequences
}

fn recorded(name: &str) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(folder(name).join("trace.pftrace")).unwrap();
    TraceReader::new(&bytes).packet().map(|packet| packet.as_bytes().to_vec()).collect()
}

/// Compares contents; returns the loss marks in front of each packet, ours and the recorded ones.
fn compare(name: &str) -> Vec<(u32, u32)> {
    let ours = packets_by_sequence(&replay(name));
    let theirs = packets_by_sequence(&recorded(name));
    assert_eq!(ours.len(), theirs.len(), "{name}: sequences");
    let mut marks = Vec::new();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours.len(), theirs.len(), "{name}: packets");
        for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
            assert_eq!(ours.0, theirs.0, "{name}: packet {index}");
            marks.push((ours.1, theirs.1));
        }
    }
    marks
}

/// The marks that are not 0 on both sides: index of the packet, our mark, the recorded one.
fn marked(name: &str) -> Vec<Mark> {
    let marks = compare(name).into_iter().enumerate();
    marks.filter(|&(_, marks)| marks != (0, 0)).map(|(index, (ours, theirs))| (index, ours, theirs)).collect()
}

/// Captures in which nothing was lost.
const LOSSLESS: &[&str] = &[
    "writer-basic",
    "writer-frag",
    "writer-div4",
    "writer-div14",
    "writer-dropfrag",
    "writer-directpatch",
    "writer-many",
    "writer-saturate",
    "writer-scrape",
    "writer-startup",
    "buffer-v2-basic",
    "buffer-v2-frag",
    "old-service-basic",
    "old-service-frag",
    "remote-frag",
    "remote-scrape",
    "relay",
];

#[test]
fn row_125_packets_equal_the_recorded_trace_where_nothing_was_lost() {
    for &name in LOSSLESS {
        // The recorded V1 buffers mark the first packet of each sequence; ours need not, it says so
        // itself.
        let ours: Vec<_> = marked(name).into_iter().filter(|&(_, ours, _)| ours != 0).collect();
        assert_eq!(ours, [], "{name}");
    }
}

/// Captures of producers that do not say which packet is their first.
const OLD: &[&str] = &["old-client-basic", "old-client-frag"];

#[test]
fn the_first_packet_of_an_old_producer_is_marked() {
    for &name in OLD {
        assert_eq!(marked(name), [(0, 1, 1)], "{name}");
    }
}

/// Index of a packet, our mark, the recorded one.
type Mark = (usize, u32, u32);

/// Captures with losses.
///
/// Recorded: V1 marks the first packet, V2 attributes the abort to it. Ours is on the packet after
/// the loss, and keeps the producer's bit (256).
const LOSSES: &[(&str, &[Mark])] = &[
    ("writer-drop", &[(0, 0, 1), (15, 385, 1)]),
    ("writer-dropbtw", &[(0, 0, 1), (16, 257, 257)]),
    ("writer-dropmid", &[(0, 0, 1), (6, 385, 1)]),
    ("old-client-drop", &[(0, 1, 1), (15, 129, 1)]),
    ("old-client-dropbtw", &[(0, 1, 1), (15, 129, 1)]),
    ("old-service-drop", &[(0, 0, 1), (15, 385, 1)]),
    ("buffer-v2-drop", &[(0, 0, 129), (15, 385, 257)]),
    ("buffer-v2-dropmid", &[(0, 0, 129), (6, 385, 33)]),
];

#[test]
fn losses_are_reported_where_they_happened() {
    for &(name, expected) in LOSSES {
        assert_eq!(marked(name), expected, "{name}");
    }
}

/// Captures that lack the memory.
const UNRECORDED: &[&str] = &["writer-incr", "writer-update", "writer-trigger"];

#[test]
fn conversations_without_recorded_memory_go_through() {
    for &name in UNRECORDED {
        let packets = replay(name);
        let last = TracePacketReader::new(packets.last().unwrap());
        assert!(last.trace_stats().is_some(), "{name}");
    }
}

#[test]
fn row_125_every_recorded_trace_is_compared() {
    let mut compared: Vec<&str> = [LOSSLESS, OLD, &["probes-session"]].concat();
    compared.extend(LOSSES.iter().map(|(name, _)| *name));
    compared.extend(UNRECORDED);
    let folders = std::fs::read_dir(folder("")).unwrap().map(|entry| entry.unwrap());
    let with_trace = folders.filter(|folder| folder.path().join("trace.pftrace").exists());
    let names: Vec<String> = with_trace.map(|folder| folder.file_name().into_string().unwrap()).collect();
    assert!(names.len() > 20);
    for name in names {
        assert!(compared.contains(&name.as_str()), "{name}");
    }
}

#[test]
fn a_session_of_traced_probes_is_recorded() {
    let marks = compare("probes-session");
    assert!(!marks.is_empty() && marks.iter().all(|&(ours, _)| ours == 0));
}

/// Returns the packets about machines in order: machine, kind and number of entries.
fn remote_packets(packets: &[Vec<u8>]) -> Vec<(Option<u32>, &'static str, usize)> {
    let told = packets.iter().filter_map(|packet| {
        let packet = TracePacketReader::parse(packet).unwrap();
        let machine = packet.machine_id();
        if let Some(info) = packet.system_info() {
            return machine.map(|_| (machine, "system info", info.num_cpus().unwrap() as usize));
        }
        if let Some(sync) = packet.remote_clock_sync() {
            return Some((machine, "clocks", sync.synced_clocks().count()));
        }
        packet.for_testing().map(|_| (machine, "content", 1))
    });
    told.collect()
}

#[test]
fn a_relayed_recording_has_the_same_facts_about_the_other_machine() {
    let theirs = remote_packets(&recorded("relay"));
    let machine = Some(1_011_363_979);
    assert!(theirs.contains(&(machine, "clocks", 2)) && theirs.contains(&(machine, "system info", 2)));
    assert_eq!(remote_packets(&replay("relay")), theirs);
}
