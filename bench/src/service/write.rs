//! Cost of writing to the service: bytes per second of its CPU time, its memory meanwhile, the time
//! until a chunk is free again, and the losses of a producer that does not wait.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::participants::{self, Kind, Producer, Service};
use super::plain_copy::plain_copy;
use super::{GROUP, PEER};
use crate::options::Options;
use crate::row::{Of, Row};
use crate::{cargo, stats};

/// Size of the central buffer, and of the ring that the floor copies into.
pub(super) const RING_BYTES: usize = 64 << 20;
/// Packets of all producers together, in a run.
const TOTAL_MIB: usize = 1024;
/// Rounds of one delay each.
const DELAYS: &str = "1000";
const SOURCE: &str = "bench.write";

/// A flood: the writers and their packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flood {
    packet_bytes: usize,
    producers: usize,
    /// Shared memory of each producer, 0 = the size that the service gives.
    smb_kb: usize,
    /// Commits of one chunk, not of half of the memory.
    by_chunk: bool,
}

/// Reaches, as ratios to the peer and to the plain copy.
#[derive(Clone, Copy, Debug)]
struct Reach {
    peer: f64,
    floor: f64,
}

const FLOODS: &[(Flood, Option<Reach>)] = &[
    (flood(64, 1, 0), Some(Reach { peer: 1.5, floor: 0.6 })),
    (flood(512, 1, 0), Some(Reach { peer: 1.6, floor: 0.75 })),
    (flood(2048, 1, 0), Some(Reach { peer: 1.6, floor: 0.75 })),
    (flood(64, 1, 4096), Some(Reach { peer: 1.5, floor: 0.6 })),
    (flood(512, 1, 4096), Some(Reach { peer: 1.6, floor: 0.75 })),
    (flood(2048, 1, 4096), Some(Reach { peer: 1.6, floor: 0.75 })),
    (flood(64, 100, 0), Some(Reach { peer: 1.5, floor: 0.6 })),
    (flood(512, 100, 0), Some(Reach { peer: 1.6, floor: 0.75 })),
    (flood(2048, 100, 0), Some(Reach { peer: 1.6, floor: 0.75 })),
    (Flood { by_chunk: true, ..flood(512, 1, 0) }, None),
];

const fn flood(packet_bytes: usize, producers: usize, smb_kb: usize) -> Flood {
    Flood { packet_bytes, producers, smb_kb, by_chunk: false }
}

/// Result of a flood.
#[derive(Clone, Copy, Debug)]
struct Flooded {
    bytes_per_cpu_s: f64,
    /// Anonymous memory of the service afterwards, without the buffer and without its memory
    /// before.
    anonymous_extra: f64,
    shared: f64,
}

/// Last line of `bench-producer flood`.
#[derive(Debug, Deserialize)]
struct FloodResult {
    packets: u64,
    bytes: u64,
    lost: u64,
}

#[derive(Debug, Deserialize)]
struct DelayResult {
    delays_ns: Vec<f64>,
}

pub(super) fn rows(options: &Options, kinds: &[Kind]) -> Result<Vec<Row>, String> {
    eprintln!("bench: building bench-producer");
    let producer = cargo::build("bench-producer")?;
    let mut floods = BTreeMap::<(Flood, &str), Vec<Flooded>>::new();
    let mut floors = BTreeMap::<Flood, Vec<f64>>::new();
    let mut losses = BTreeMap::<(&str, &str), Vec<f64>>::new();
    let mut delays = BTreeMap::<(&str, &str), Vec<f64>>::new();
    for round in 1..=options.rounds {
        eprintln!("bench: service write, round {round} of {}", options.rounds);
        for &(flood, _) in FLOODS {
            floors.entry(flood).or_default().push(plain_copy(flood.producers, flood.smb_kb, TOTAL_MIB << 20));
            for kind in kinds {
                floods.entry((flood, kind.name)).or_default().push(measure_flood(kind, &producer, flood)?);
            }
        }
        for kind in kinds {
            for policy in ["drop", "stall"] {
                losses.entry((policy, kind.name)).or_default().push(measure_losses(kind, &producer, policy)?);
            }
            for load in ["idle", "busy"] {
                delays.entry((load, kind.name)).or_default().extend(measure_delays(kind, &producer, load == "busy")?);
            }
        }
    }

    let peer = kinds.get(1).map(|kind| kind.name);
    let mut rows = Vec::new();
    for &(flood, reach) in FLOODS {
        let of = |kind: &str, value: fn(&Flooded) -> f64| median_of(floods.get(&(flood, kind)), value);
        let beside = |row: Row, value: fn(&Flooded) -> f64| row.beside(PEER, peer.map(|peer| of(peer, value)));
        let speed = |flooded: &Flooded| flooded.bytes_per_cpu_s / 1e9;
        let floor = median_of(floors.get(&flood), |bytes| *bytes) / 1e9;
        let row = Row::new(GROUP, flood.name(), "GB per CPU-s", of("esatto", speed)).more_is_better();
        let row = beside(row, speed).above(floor);
        rows.extend(match reach {
            Some(reach) => vec![row.clone().reach(Of::Peer, reach.peer), row.reach(Of::Floor, reach.floor)],
            None => vec![row],
        });
    }
    for &(flood, _) in FLOODS.iter().filter(|(flood, _)| flood.producers > 1) {
        let share = |kind: &str| {
            let of = |flood| median_of(floods.get(&(flood, kind)), |flooded: &Flooded| flooded.bytes_per_cpu_s);
            of(flood) * 100.0 / of(Flood { producers: 1, ..flood })
        };
        let case = format!("{} B, {} producers: bytes per CPU-s, of those of one", flood.packet_bytes, flood.producers);
        let row = Row::new(GROUP, case, "%", share("esatto")).more_is_better();
        rows.push(row.beside(PEER, peer.map(share)).reach(Of::Value, 80.0));
    }
    for &(flood, _) in FLOODS.iter().filter(|(flood, _)| flood.packet_bytes == 512 && !flood.by_chunk) {
        let of = |kind: &str, value: fn(&Flooded) -> f64| median_of(floods.get(&(flood, kind)), value);
        let beside = |row: Row, value: fn(&Flooded) -> f64| row.beside(PEER, peer.map(|peer| of(peer, value)));
        let extra = |flooded: &Flooded| flooded.anonymous_extra / 1e6;
        let allowed = (RING_BYTES / 10 + (flood.producers.div_ceil(100) << 20)) as f64 / 1e6;
        let case = format!("{}: anonymous memory over the buffer", flood.name());
        rows.push(beside(Row::new(GROUP, case, "MB", of("esatto", extra)), extra).reach(Of::Value, allowed));
        let shared = |flooded: &Flooded| flooded.shared / 1e6;
        let case = format!("{}: shared memory", flood.name());
        rows.push(beside(Row::new(GROUP, case, "MB", of("esatto", shared)), shared));
    }
    for policy in ["drop", "stall"] {
        let of = |kind: &str| median_of(losses.get(&(policy, kind)), |lost| *lost);
        let case = format!("losses of a back-to-back writer, 512 B, default sizes, {policy}");
        let row = Row::new(GROUP, case, "% of packets", of("esatto")).beside(PEER, peer.map(of));
        rows.push(if policy == "drop" { row.reach(Of::Peer, 1.0) } else { row.reach(Of::Value, 0.0) });
    }
    for load in ["idle", "busy"] {
        let of = |kind: &str| median_of(delays.get(&(load, kind)), |delay| delay / 1000.0);
        let case = format!("a full chunk, from release to free again, service {load}");
        rows.push(Row::new(GROUP, case, "us", of("esatto")).beside(PEER, peer.map(of)));
    }
    Ok(rows)
}

impl Flood {
    fn name(self) -> String {
        let Self { packet_bytes, producers, smb_kb, by_chunk } = self;
        let smb = if smb_kb == 0 { "default SMB".to_owned() } else { format!("SMB of {} MiB", smb_kb / 1024) };
        let commits = if by_chunk { ", a commit for each chunk" } else { "" };
        format!("{packet_bytes} B, {producers} producer{}, {smb}{commits}", if producers == 1 { "" } else { "s" })
    }
}

fn measure_flood(kind: &Kind, program: &Path, flood: Flood) -> Result<Flooded, String> {
    let service = Service::start(kind)?;
    let before = service.memory()?;
    let commit = if flood.by_chunk { "chunk" } else { "half" };
    let numbers = [flood.producers, flood.packet_bytes, flood.smb_kb, TOTAL_MIB].map(|number| number.to_string());
    let [producers, packet, smb_kb, mib] = numbers.each_ref().map(String::as_str);
    let args = ["flood", "--producers", producers, "--packet", packet, "--smb-kb", smb_kb, "--mib", mib];
    let mut producer = Producer::start(&service, program, &[&args[..], &["--commit", commit]].concat())?;
    let mut session = start_session(&service, &mut producer)?;
    let cpu = service.cpu_time()?;
    producer.go()?;
    let result: FloodResult = producer.line()?;
    let cpu = service.cpu_time()? - cpu;
    let after = service.memory()?;
    if result.lost != 0 {
        return Err(format!("{}: {} of {} packets were lost", kind.name, result.lost, result.packets));
    }
    let stats = session.stats()?;
    let written = stats.buffer_stats.first().and_then(|buffer| buffer.bytes_written).unwrap_or(0);
    if written < result.bytes {
        return Err(format!("{}: of {} bytes only {written} arrived in the buffer", kind.name, result.bytes));
    }
    session.free()?;
    Ok(Flooded {
        bytes_per_cpu_s: result.bytes as f64 / cpu.as_secs_f64(),
        anonymous_extra: after.anonymous as f64 - before.anonymous as f64 - RING_BYTES as f64,
        shared: after.shared as f64,
    })
}

/// Percent of the packets that a writer lost that writes back to back, at default sizes.
fn measure_losses(kind: &Kind, program: &Path, policy: &str) -> Result<f64, String> {
    let service = Service::start(kind)?;
    let args = ["flood", "--packet", "512", "--mib", "512", "--commit", "thread", "--policy", policy];
    let mut producer = Producer::start(&service, program, &args)?;
    let session = start_session(&service, &mut producer)?;
    producer.go()?;
    let result: FloodResult = producer.line()?;
    session.free()?;
    Ok(result.lost as f64 * 100.0 / result.packets as f64)
}

/// Nanoseconds from release to free, of each of many chunks.
fn measure_delays(kind: &Kind, program: &Path, busy: bool) -> Result<Vec<f64>, String> {
    let service = Service::start(kind)?;
    let mut producer = Producer::start(&service, program, &["delay", "--rounds", DELAYS])?;
    let session = start_session(&service, &mut producer)?;
    let other = if busy {
        let args = ["flood", "--source", "bench.other", "--mib", "100000", "--commit", "thread"];
        let mut other = Producer::start(&service, program, &args)?;
        let session = service.record(participants::config("bench.other", (RING_BYTES / 1024) as u32))?;
        other.await_start()?;
        other.go()?;
        Some((session, other))
    } else {
        None
    };
    producer.go()?;
    let result: DelayResult = producer.line()?;
    drop(producer);
    drop(other);
    session.free()?;
    Ok(result.delays_ns)
}

/// A session with all data sources of the producers started.
fn start_session(service: &Service, producer: &mut Producer) -> Result<participants::Session, String> {
    // Data sources that are registered later are set up then.
    let session = service.record(participants::config(SOURCE, (RING_BYTES / 1024) as u32))?;
    producer.await_start()?;
    Ok(session)
}

fn median_of<T>(samples: Option<&Vec<T>>, value: impl Fn(&T) -> f64) -> f64 {
    stats::median(&samples.map_or_else(Vec::new, |samples| samples.iter().map(value).collect()))
}
