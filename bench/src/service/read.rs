//! How fast a full buffer comes out: through the consumer's socket, and into a file in memory.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use esatto_ipc::{FrameBody, FrameDecoder};
use esatto_protozero::Owned as _;
use esatto_schema::{
    DisableTracingRequest, EnableTracingRequest, ReadBuffersRequest, ReadBuffersResponseReader, TraceConfig,
};

use super::participants::{self, DEADLINE, Kind, Producer, Service};
use super::{GROUP, PEER};
use crate::options::Options;
use crate::row::{Of, Row};
use crate::{cargo, stats};

/// Size of the central buffer; a little more is written into it.
const BUFFER_MIB: u32 = 256;
const WRITTEN_MIB: u32 = 260;
const SOURCE: &str = "bench.read";
/// A file system in memory.
const TMPFS: &str = "/dev/shm";

const PACKETS: &[usize] = &[64, 512, 2048];

/// Where the trace goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Socket,
    File,
}

impl Way {
    const ALL: [Self; 2] = [Self::Socket, Self::File];

    const fn name(self) -> &'static str {
        match self {
            Self::Socket => "256 MiB read through the consumer's socket",
            Self::File => "256 MiB written into a file (tmpfs)",
        }
    }
}

/// Cost of reading in one way.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// Bytes of packets.
    bytes: f64,
    wall: Duration,
    cpu: Duration,
}

type Samples = BTreeMap<(Way, usize, &'static str), Vec<Taken>>;

pub(super) fn rows(options: &Options, kinds: &[Kind]) -> Result<Vec<Row>, String> {
    eprintln!("bench: building bench-producer");
    let producer = cargo::build("bench-producer")?;
    let folder =
        tempfile::Builder::new().prefix("bench").tempdir_in(TMPFS).map_err(|error| format!("{TMPFS}: {error}"))?;
    let mut samples = Samples::new();
    let mut cat = BTreeMap::<Way, Vec<f64>>::new();
    for round in 1..=options.rounds {
        eprintln!("bench: service read, round {round} of {}", options.rounds);
        for way in Way::ALL {
            for &packet in PACKETS {
                for kind in kinds {
                    let taken = measure(kind, &producer, way, packet, folder.path())?;
                    samples.entry((way, packet, kind.name)).or_default().push(taken);
                }
            }
            cat.entry(way).or_default().push(measure_cat(way, folder.path())?);
        }
    }

    let mut rows = Vec::new();
    for way in Way::ALL {
        let floor = stats::median(&cat[&way]);
        for &packet in PACKETS {
            let of = |kind: &str, value: fn(&Taken) -> f64| {
                let samples = samples.get(&(way, packet, kind));
                stats::median(&samples.map_or_else(Vec::new, |samples| samples.iter().map(value).collect()))
            };
            let peer = kinds.get(1).map(|kind| kind.name);
            let row = |case: String, unit, value: fn(&Taken) -> f64| {
                let row = Row::new(GROUP, case, unit, of("esatto", value)).more_is_better();
                row.beside(PEER, peer.map(|peer| of(peer, value)))
            };
            let case = format!("{}, packets of {packet} B", way.name());
            let wall = row(case.clone(), "GB/s", |taken| taken.bytes / taken.wall.as_secs_f64() / 1e9);
            rows.push(wall.above(floor).reach(Of::Peer, 2.0));
            rows.push(row(case, "GB per CPU-s", |taken| taken.bytes / taken.cpu.as_secs_f64() / 1e9));
        }
    }
    Ok(rows)
}

fn measure(kind: &Kind, program: &Path, way: Way, packet: usize, folder: &Path) -> Result<Taken, String> {
    let service = Service::start(kind)?;
    let (packet, mib) = (packet.to_string(), WRITTEN_MIB.to_string());
    let args = ["flood", "--packet", &packet, "--mib", &mib, "--smb-kb", "4096", "--source", SOURCE];
    let mut producer = Producer::start(&service, program, &args)?;
    let config = participants::config(SOURCE, BUFFER_MIB * 1024);
    match way {
        Way::Socket => {
            let mut session = service.record(config)?;
            fill(&mut producer)?;
            let cpu = service.cpu_time_of_all()?;
            let begin = Instant::now();
            let bytes = read_all(&mut session)?;
            let taken = Taken { bytes: bytes as f64, wall: begin.elapsed(), cpu: service.cpu_time_of_all()? - cpu };
            session.free()?;
            Ok(taken)
        }
        Way::File => {
            let path = folder.join("trace");
            let file = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(&path);
            let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
            let hour_ms = Some(3_600_000);
            let config = TraceConfig { write_into_file: Some(true), file_write_period_ms: hour_ms, ..config };
            let mut consumer = service.consumer()?;
            let request = EnableTracingRequest { trace_config: Some(config.into()), ..EnableTracingRequest::default() };
            let end = consumer.send("EnableTracing", &request.encode(), Some(file.into()));
            let end = end.map_err(|error| error.to_string())?;
            fill(&mut producer)?;
            let cpu = service.cpu_time_of_all()?;
            let begin = Instant::now();
            let request = DisableTracingRequest::default().encode();
            consumer.send_one_way("DisableTracing", &request).map_err(|error| error.to_string())?;
            consumer.wait_reply(end, Some(DEADLINE)).map_err(|error| error.to_string())?;
            let wall = begin.elapsed();
            let cpu = service.cpu_time_of_all()? - cpu;
            let bytes = std::fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?.len();
            // The read bytes fill the buffer.
            if bytes < u64::from(BUFFER_MIB) << 19 {
                return Err(format!("{}: a file of {bytes} bytes", kind.name));
            }
            Ok(Taken { bytes: bytes as f64, wall, cpu })
        }
    }
}

fn fill(producer: &mut Producer) -> Result<(), String> {
    producer.await_start()?;
    producer.go()?;
    producer.line::<serde_json::Value>().map(drop)
}

/// Reads a session to its end, by hand: a consumer that costs little. Returns the bytes of all
/// packets.
fn read_all(session: &mut participants::Session) -> Result<u64, String> {
    let consumer = &mut session.consumer;
    let request = ReadBuffersRequest::default().encode();
    consumer.send("ReadBuffers", &request, None).map_err(|error| error.to_string())?;
    let socket = consumer.connection().stream().as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
    let mut socket = UnixStream::from(socket);
    socket.set_nonblocking(false).map_err(|error| error.to_string())?;
    let mut decoder = FrameDecoder::new();
    let mut bytes = 0;
    loop {
        let len = socket.read(decoder.spare()).map_err(|error| format!("the consumer's socket: {error}"))?;
        if len == 0 {
            return Err("the service closed the connection".to_owned());
        }
        decoder.advance(len);
        while let Some(frame) = decoder.next_frame().map_err(|error| error.to_string())? {
            let FrameBody::InvokeMethodReply { success: true, has_more, body } = frame.body else {
                return Err(format!("a reply of another kind: {}", frame.kind()));
            };
            let slices = ReadBuffersResponseReader::new(body).slices();
            bytes += slices.filter_map(|slice| slice.data()).map(|data| data.len() as u64).sum::<u64>();
            if !has_more {
                socket.set_nonblocking(true).map_err(|error| error.to_string())?;
                return Ok(bytes);
            }
        }
    }
}

/// Bytes per nanosecond of `cat`, of as many bytes, on the same way.
fn measure_cat(way: Way, folder: &Path) -> Result<f64, String> {
    let (from, to) = (folder.join("cat-from"), folder.join("cat-to"));
    let bytes = u64::from(BUFFER_MIB) << 20;
    if std::fs::metadata(&from).is_ok_and(|metadata| metadata.len() == bytes) {
    } else {
        write_file(&from, bytes)?;
    }
    let _ = std::fs::remove_file(&to);
    let mut command = Command::new("cat");
    command.arg(&from);
    let begin = Instant::now();
    match way {
        Way::File => {
            let to = File::create(&to).map_err(|error| format!("{}: {error}", to.display()))?;
            let status = command.stdout(to).status().map_err(|error| format!("cat: {error}"))?;
            if !status.success() {
                return Err(format!("cat: {status}"));
            }
        }
        Way::Socket => {
            let (mut ours, theirs) = UnixStream::pair().map_err(|error| format!("socketpair: {error}"))?;
            command.stdout(Stdio::from(std::os::fd::OwnedFd::from(theirs)));
            let mut child = command.spawn().map_err(|error| format!("cat: {error}"))?;
            drop(command);
            let mut buffer = vec![0; 1 << 17];
            while ours.read(&mut buffer).map_err(|error| format!("cat: {error}"))? != 0 {}
            child.wait().map_err(|error| format!("cat: {error}"))?;
        }
    }
    Ok(bytes as f64 / begin.elapsed().as_nanos() as f64)
}

fn write_file(path: &PathBuf, bytes: u64) -> Result<(), String> {
    let block = vec![b'x'; 1 << 20];
    let mut file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
    for _ in 0..bytes >> 20 {
        file.write_all(&block).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}
