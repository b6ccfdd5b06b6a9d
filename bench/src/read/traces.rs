//! Large traces that are made for a measurement.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

/// Writes a trace of about so many bytes, and returns how many they are.
pub(crate) type Make = fn(&Path, u64) -> Result<u64, String>;

/// Time of the first packet.
const START_NS: u64 = 1_000_000_000_000;

/// Fields of `TracePacket`.
const CLOCK_SNAPSHOT: u32 = 6;
const TIMESTAMP: u32 = 8;
const SEQUENCE_ID: u32 = 10;
const TRACK_EVENT: u32 = 11;
const INTERNED_DATA: u32 = 12;
const SEQUENCE_FLAGS: u32 = 13;
const FTRACE_EVENTS: u32 = 1;
const PROCESS_TREE: u32 = 2;
const TRACE_PACKET_DEFAULTS: u32 = 59;
const TRACK_DESCRIPTOR: u32 = 60;

/// Threads that write track events.
const THREADS: u64 = 8;
const PID: u64 = 1000;
/// Names of events of a thread.
const NAMES: u64 = 100;
/// Events after which a thread sends its interned data anew, as an SDK does from time to time.
const EVENTS_OF_A_STATE: u64 = 50_000;
/// Clock of a sequence, in nanoseconds since the packet before.
const INCREMENTAL_CLOCK: u64 = 64;
const BOOTTIME: u64 = 6;

const CPUS: u64 = 8;
const SWITCHES_OF_A_BUNDLE: u64 = 200;
/// Threads that the CPUs run.
const SCHEDULED: u64 = 400;

/// A message that is being encoded.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn number(mut self, id: u32, value: u64) -> Self {
        put(&mut self.0, u64::from(id) << 3);
        put(&mut self.0, value);
        self
    }

    fn bytes(mut self, id: u32, bytes: &[u8]) -> Self {
        put(&mut self.0, u64::from(id) << 3 | 2);
        put(&mut self.0, bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    fn message(self, id: u32, inner: &Self) -> Self {
        self.bytes(id, &inner.0)
    }

    fn packed(self, id: u32, values: impl Iterator<Item = u64>) -> Self {
        let mut list = Vec::new();
        values.for_each(|value| put(&mut list, value));
        self.bytes(id, &list)
    }
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A file to which packets are written.
struct Packets {
    file: BufWriter<File>,
    bytes: u64,
}

impl Packets {
    fn create(path: &Path) -> Result<Self, String> {
        let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { file: BufWriter::with_capacity(1 << 20, file), bytes: 0 })
    }

    fn add(&mut self, packet: &Message) -> Result<(), String> {
        let mut head = vec![0x0a];
        put(&mut head, packet.0.len() as u64);
        self.bytes += (head.len() + packet.0.len()) as u64;
        let written = self.file.write_all(&head).and_then(|()| self.file.write_all(&packet.0));
        written.map_err(|error| format!("trace: {error}"))
    }

    fn finish(mut self) -> Result<u64, String> {
        self.file.flush().map_err(|error| format!("trace: {error}"))?;
        Ok(self.bytes)
    }
}

fn snapshot(clocks: &[(u64, u64, bool)]) -> Message {
    clocks.iter().fold(Message::default(), |snapshot, &(id, ticks, is_incremental)| {
        let clock = Message::default().number(1, id).number(2, ticks).number(3, u64::from(is_incremental));
        snapshot.message(1, &clock)
    })
}

/// Writes track events as an SDK does: nested slices of several threads with interned names, an
/// annotation on each second one, counters and flows. Returns the bytes of the trace.
pub(crate) fn track_events(path: &Path, bytes: u64) -> Result<u64, String> {
    let mut packets = Packets::create(path)?;
    packets.add(&Message::default().message(CLOCK_SNAPSHOT, &snapshot(&[(BOOTTIME, START_NS, false)])))?;
    let mut now = START_NS;
    let mut event = 0;
    while packets.bytes < bytes {
        let thread = event % THREADS;
        let number = event / THREADS;
        let on_sequence = Message::default().number(SEQUENCE_ID, 2 + thread);
        if number % EVENTS_OF_A_STATE == 0 {
            begin_state(&mut packets, thread, now, number)?;
        }
        // Four begins, then their four ends.
        let (step, name) = (number % 8, number / 3 % NAMES + 1);
        let mut body = Message::default();
        if step < 4 {
            body = body.number(9, 1).number(10, name).number(3, 1 + name % 5);
            if step % 2 == 0 {
                body = body.message(4, &Message::default().number(1, 1).number(3, number % 1000));
            }
            if number % 64 == 0 {
                // Alternately the begin and the end of an arrow to the next thread.
                body.0.extend([0xf9, 0x02]);
                body.0.extend((number / 128 * THREADS + thread / 2).to_le_bytes());
            }
        } else {
            body = body.number(9, 2);
        }
        let delta = 1 + event % 7 * 50;
        now += delta;
        packets.add(
            &on_sequence.number(SEQUENCE_FLAGS, 2).number(TIMESTAMP, delta * THREADS).message(TRACK_EVENT, &body),
        )?;
        if number % 16 == 0 {
            let counter = Message::default().number(9, 4).number(11, 100 + thread).number(30, number % 777);
            let packet = Message::default().number(SEQUENCE_ID, 2 + thread).number(SEQUENCE_FLAGS, 2);
            packets.add(&packet.number(TIMESTAMP, 1).message(TRACK_EVENT, &counter))?;
        }
        event += 1;
    }
    packets.finish()
}

/// Sends the tracks and the interned data of a thread.
fn begin_state(packets: &mut Packets, thread: u64, now: u64, number: u64) -> Result<(), String> {
    let sequence = || Message::default().number(SEQUENCE_ID, 2 + thread);
    let defaults =
        Message::default().number(58, INCREMENTAL_CLOCK).message(11, &Message::default().number(11, 10 + thread));
    let clocks = snapshot(&[(INCREMENTAL_CLOCK, now, true), (BOOTTIME, now, false)]);
    let first = if number == 0 { sequence().number(87, 1) } else { sequence() };
    let packet = first.number(SEQUENCE_FLAGS, 1).message(TRACE_PACKET_DEFAULTS, &defaults);
    packets.add(&packet.message(CLOCK_SNAPSHOT, &clocks))?;
    let owner =
        Message::default().number(1, PID).number(2, PID + thread).bytes(5, format!("worker {thread}").as_bytes());
    let track = Message::default().number(1, 10 + thread).message(4, &owner);
    packets.add(&sequence().number(SEQUENCE_FLAGS, 2).message(TRACK_DESCRIPTOR, &track))?;
    let counter = Message::default().number(1, 100 + thread).bytes(2, b"queue").number(5, 10 + thread);
    let counter = counter.message(8, &Message::default());
    packets.add(&sequence().number(SEQUENCE_FLAGS, 2).message(TRACK_DESCRIPTOR, &counter))?;
    let entry = |iid: u64, name: String| Message::default().number(1, iid).bytes(2, name.as_bytes());
    let mut interned = Message::default().message(3, &entry(1, "size".to_owned()));
    for iid in 1..=NAMES {
        interned = interned.message(2, &entry(iid, format!("handle request of kind {iid}")));
    }
    for iid in 1..=5 {
        interned = interned.message(1, &entry(iid, format!("category{iid}")));
    }
    packets.add(&sequence().number(SEQUENCE_FLAGS, 2).message(INTERNED_DATA, &interned))
}

/// Writes switches and wake-ups of many threads in the compact form. Returns the bytes of the
/// trace.
pub(crate) fn scheduling(path: &Path, bytes: u64) -> Result<u64, String> {
    let mut packets = Packets::create(path)?;
    packets.add(&Message::default().message(CLOCK_SNAPSHOT, &snapshot(&[(BOOTTIME, START_NS, false)])))?;
    let tree = (0..SCHEDULED).fold(Message::default(), |tree, tid| match tid % 10 {
        0 => tree.message(
            1,
            &Message::default().number(1, PID + tid).number(2, 1).bytes(3, format!("/bin/p{tid}").as_bytes()),
        ),
        thread => tree.message(2, &Message::default().number(1, PID + tid).number(3, PID + tid - thread)),
    });
    packets.add(&Message::default().number(SEQUENCE_ID, 2).number(TIMESTAMP, START_NS).message(PROCESS_TREE, &tree))?;
    let mut now = START_NS;
    let mut random = 1_u64;
    let mut next = move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    while packets.bytes < bytes {
        for cpu in 0..CPUS {
            let pids: Vec<u64> =
                (0..SWITCHES_OF_A_BUNDLE).map(|_| PID + (next() % (SCHEDULED / CPUS)) * CPUS + cpu).collect();
            let deltas: Vec<u64> = (0..SWITCHES_OF_A_BUNDLE).map(|_| 1000 + next() % 4000).collect();
            let times = |begin: u64| std::iter::once(begin).chain(deltas.iter().copied().skip(1));
            let mut compact = Message::default()
                .packed(1, times(now))
                .packed(2, pids.iter().map(|pid| pid % 2))
                .packed(3, pids.iter().copied())
                .packed(4, pids.iter().map(|_| 120))
                .packed(6, pids.iter().map(|pid| pid % 16))
                .packed(7, times(now + 500))
                .packed(8, pids.iter().copied())
                .packed(9, pids.iter().map(|_| cpu))
                .packed(10, pids.iter().map(|_| 120))
                .packed(11, pids.iter().map(|pid| pid % 16));
            for name in 0..16 {
                compact = compact.bytes(5, format!("thread-{name}").as_bytes());
            }
            let bundle = Message::default().number(1, cpu).message(4, &compact);
            packets.add(&Message::default().number(SEQUENCE_ID, 2).message(FTRACE_EVENTS, &bundle))?;
        }
        now += SWITCHES_OF_A_BUNDLE * 5000;
    }
    packets.finish()
}
