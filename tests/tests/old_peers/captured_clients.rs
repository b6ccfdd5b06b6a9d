//! Plays the bytes of real v15 clients to our service, and as a control to Perfetto's. The trace
//! has the same packets as then.

use esatto_tests::raw::PAGE_SIZE;
use esatto_tests::wire::{self, Peer, Proto};
use esatto_tests::{Harness, Implementation, Skip};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// Each captured conversation with our service and with Perfetto's.
macro_rules! captures {
    ($($name:ident: $folder:literal),* $(,)?) => {
        $(mod $name {
            esatto_tests::for_each_service!(scenario);

            fn scenario(implementation: esatto_tests::Implementation) -> Result<(), esatto_tests::Skip> {
                super::replay(implementation, $folder)
            }
        })*
    };
}

captures! {
    three_packets: "old-client-basic",
    a_packet_over_three_chunks: "old-client-frag",
    a_packet_that_did_not_fit: "old-client-drop",
    a_loss_between_packets: "old-client-dropbtw",
}

/// A line of a `frames.tsv`, with the bytes it is about.
struct Line {
    is_from_client: bool,
    method: String,
    /// The shared memory just before.
    memory: Option<Vec<u8>>,
    bytes: Vec<u8>,
}

fn folder(capture: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("captures").join(capture)
}

fn lines(capture: &str, connection: &str) -> Vec<Line> {
    let read = |name: &str| {
        let path = folder(capture).join(name);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let text = String::from_utf8(read(&format!("{connection}.frames.tsv"))).expect("text");
    let [sent, received] = ["c2s", "s2c"].map(|direction| read(&format!("{connection}.{direction}.bin")));
    let line = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let is_from_client = columns[1] == "c2s";
        let (offset, length): (usize, usize) =
            (columns[2].parse().expect("offset"), columns[3].parse().expect("length"));
        let bytes = if is_from_client { &sent } else { &received };
        Line {
            is_from_client,
            method: columns[6].to_owned(),
            memory: columns.get(8).filter(|name| !name.is_empty()).map(|name| read(name)),
            bytes: bytes[offset..offset + length].to_vec(),
        }
    };
    text.lines().skip(1).map(line).collect()
}

/// The test packets of a trace, without the fields that the service adds.
fn test_packets<'a>(packets: impl Iterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let own = packets.filter(|packet| wire::last(packet, 900).is_some());
    let strip = |packet: &[u8]| {
        let fields = wire::fields(packet).into_iter().filter(|(field, _)| !matches!(field, 3 | 10 | 42 | 79));
        Proto::of(fields).0
    };
    own.map(strip).collect()
}

fn replay(implementation: Implementation, capture: &str) -> Result<(), Skip> {
    let harness = Harness::new();
    let mut service = harness.service(implementation);
    let mut consumer = Consumer { peer: Peer::connect(&harness.consumer_socket()), packets: Vec::new() };
    let mut consumed = lines(capture, "consumer").into_iter().peekable();

    let mut producer = Peer::connect(&harness.producer_socket());
    let mut memory: Option<OwnedFd> = None;
    let mut waiting = VecDeque::new();
    for line in lines(capture, "producer") {
        if line.is_from_client {
            if let (Some(snapshot), "CommitData") = (&line.memory, &*line.method) {
                fill(memory.as_ref().expect("setup_tracing came before"), snapshot);
            }
            producer.send(&line.bytes);
            if line.method == "CommitData" {
                waiting.extend(handled(&mut producer));
            }
            continue;
        }
        if line.method == "GetAsyncCommand" && memory.is_none() {
            // It has all it needs: the session is enabled.
            while let Some(line) = consumed.next_if(|line| line.is_from_client || line.method == "ConsumerPort") {
                consumer.play(&line);
            }
        }
        let frame = waiting.pop_front().unwrap_or_else(|| producer.read_frame().expect("an answer or a command"));
        assert_eq!(wire::int(&frame, 2), wire::int(&line.bytes[4..], 2), "{}: as many as then, in order", line.method);
        memory = memory.or_else(|| producer.take_descriptor());
    }
    for line in consumed {
        consumer.play(&line);
    }

    let trace = std::fs::read(folder(capture).join("trace.pftrace")).expect("the trace");
    let expected = test_packets(wire::all(&trace, 1).into_iter());
    assert!(!expected.is_empty());
    let found = test_packets(consumer.packets.iter().map(Vec::as_slice));
    let same = found.iter().zip(&expected).take_while(|(found, expected)| found == expected).count();
    assert!(found == expected, "{} packets, {} then; the first {same} are the same", found.len(), expected.len());
    assert!(service.is_running());
    Ok(())
}

/// Waits until the service has handled the sent frames, before the memory changes. Returns the
/// frames that it sent meanwhile.
fn handled(producer: &mut Peer) -> Vec<Vec<u8>> {
    // A Sync, with a number that no captured call has.
    const ID: u64 = 1 << 40;
    let sync = Proto::new().int(1, 1).int(2, 11).bytes(3, "").int(4, 0);
    producer.send(&Proto::new().int(2, ID).message(5, &sync).frame());
    let frames = std::iter::from_fn(|| producer.read_frame().filter(|frame| wire::int(frame, 2) != ID));
    frames.collect()
}

/// Restores the captured content of the memory.
fn fill(memory: &OwnedFd, snapshot: &[u8]) {
    let size = usize::try_from(rustix::fs::fstat(memory).expect("a size").st_size).expect("a size");
    let mut bytes = snapshot.to_vec();
    bytes.resize(size, 0);
    // A chunk first, its page's word last.
    for (page, content) in bytes.chunks_exact(PAGE_SIZE).enumerate() {
        let at = (page * PAGE_SIZE) as u64;
        rustix::io::pwrite(memory, &content[4..], at + 4).expect("the memory");
        rustix::io::pwrite(memory, &content[..4], at).expect("the memory");
    }
}

struct Consumer {
    peer: Peer,
    packets: Vec<Vec<u8>>,
}

impl Consumer {
    fn play(&mut self, line: &Line) {
        if line.is_from_client {
            self.peer.send(&line.bytes);
            return;
        }
        // One reply then may be several now.
        let mut packet = Vec::new();
        loop {
            let reply = self.peer.read().expect("an answer");
            assert_eq!(reply.error, None, "{}", line.method);
            for slice in wire::all(&reply.body, 2).into_iter().filter(|_| line.method == "ReadBuffers") {
                packet.extend_from_slice(wire::last(slice, 1).unwrap_or_default());
                if wire::int(slice, 2) != 0 {
                    self.packets.push(std::mem::take(&mut packet));
                }
            }
            if !reply.has_more {
                break;
            }
        }
    }
}
