//! Group `front`: how long a user of the command line waits: from the start of the command to the
//! first recorded event, and from Ctrl-C to the finished file. `esatto record`, `esatto traced` and
//! `esatto probes` beside Perfetto's `perfetto`, `traced` and `traced_probes`.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use esatto_protozero::Fields;
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};

use crate::cargo;
use crate::options::Options;
use crate::row::{Of, Row};
use crate::service::participants::{DEADLINE, Kind, Service};
use crate::stats;
use crate::traced::{Running, official};

const GROUP: &str = "front";
const PEER: &str = "perfetto v56";
/// Recordings of a measurement, in a round. The first one does not count.
const RECORDINGS: usize = 8;
/// Time for which each records.
const RECORDING: Duration = Duration::from_millis(300);
/// All processes are listed at once, which is the first event.
const CONFIG: &str = r#"
buffers { size_kb: 16384 fill_policy: RING_BUFFER }
data_sources {
  config {
    name: "linux.process_stats"
    process_stats_config { scan_all_processes_on_start: true }
  }
}
data_sources {
  config {
    name: "linux.sys_stats"
    sys_stats_config { stat_period_ms: 10 stat_counters: STAT_CPU_TIMES }
  }
}
"#;
/// Field of a `TracePacket` with the list of processes.
const PROCESS_TREE: u32 = 2;
const TIMESTAMP: u32 = 8;

/// The programs of one side.
#[derive(Debug)]
struct Side {
    name: &'static str,
    service: PathBuf,
    probes: PathBuf,
    recorder: PathBuf,
}

impl Side {
    fn is_ours(&self) -> bool {
        self.name == "esatto"
    }

    /// The command that records with running daemons.
    fn record(&self, service: &Service, config: &Path, trace: &Path) -> Command {
        let mut command = service.command(&self.recorder);
        if self.is_ours() {
            command.arg("record").arg("-c").arg(config).arg("-o").arg(trace);
        } else {
            command.arg("--txt").arg("-c").arg(config).arg("-o").arg(trace);
        }
        command
    }
}

/// Milliseconds.
#[derive(Clone, Debug, Default)]
struct Waits {
    first_event: Vec<f64>,
    cold_first_event: Vec<f64>,
    file: Vec<f64>,
}

pub(crate) fn run(options: &Options) -> Result<Vec<Row>, String> {
    eprintln!("bench: building the programs");
    let esatto = cargo::build_shipped("esatto-cli", "esatto")?;
    let probes = cargo::build_shipped("esatto-probes", "traced_probes")?;
    let mut sides = vec![Side { name: "esatto", service: cargo::build_daemon()?, probes, recorder: esatto }];
    match (official("traced"), official("traced_probes"), official("perfetto")) {
        (Ok(service), Ok(probes), Ok(recorder)) => sides.push(Side { name: PEER, service, probes, recorder }),
        (service, probes, recorder) => {
            let why = [service, probes, recorder].into_iter().find_map(Result::err).unwrap_or_default();
            eprintln!("bench: without {PEER}: {why}");
        }
    }
    let mut waits = BTreeMap::<&str, Waits>::new();
    for round in 1..=options.rounds {
        eprintln!("bench: front, round {round} of {}", options.rounds);
        for side in &sides {
            let waits = waits.entry(side.name).or_default();
            with_daemons(side, waits)?;
            without_daemons(side, waits)?;
        }
    }
    let peer = sides.get(1).map(|side| side.name);
    let mut rows = Vec::new();
    for (case, of) in [
        ("start of the command to the first event", (|waits| &waits.first_event) as fn(&Waits) -> &Vec<f64>),
        ("the same, with the start of the daemons", |waits| &waits.cold_first_event),
        ("Ctrl-C to the finished file", |waits| &waits.file),
    ] {
        for (name, statistic) in stats::BOTH {
            let value = |side: &str| waits.get(side).map_or(0.0, |waits| statistic(of(waits)));
            let row = Row::new(GROUP, format!("{case}, {name}"), "ms", value("esatto"));
            let row = row.beside(PEER, peer.map(value));
            rows.push(if name == "median" { row.reach(Of::Peer, 1.0) } else { row });
        }
    }
    Ok(rows)
}

/// Records with daemons that have been running before.
fn with_daemons(side: &Side, waits: &mut Waits) -> Result<(), String> {
    let service = Service::start(&Kind { name: side.name, program: side.service.clone() })?;
    let mut probes = Running::start(&mut service.command(&side.probes), service.folder().join("probes.log"))?;
    let config = service.folder().join("config");
    std::fs::write(&config, CONFIG).map_err(|error| format!("{}: {error}", config.display()))?;
    let trace = service.folder().join("trace");
    // The probes register when they have connected. An early recording would not have them.
    let mut is_ready = false;
    probes.wait("the probes record", || {
        is_ready = record(side.record(&service, &config, &trace), &trace).is_ok();
        is_ready
    })?;
    for number in 0..=RECORDINGS {
        let (first_event_ms, file_ms) = record(side.record(&service, &config, &trace), &trace)?;
        if number > 0 {
            waits.first_event.push(first_event_ms);
            waits.file.push(file_ms);
        }
    }
    Ok(())
}

/// Records with daemons that start at the same time: `tracebox` of ours, three programs of theirs.
fn without_daemons(side: &Side, waits: &mut Waits) -> Result<(), String> {
    for number in 0..=RECORDINGS {
        let folder = tempfile::Builder::new().prefix("bench").tempdir().map_err(|error| error.to_string())?;
        let (config, trace) = (folder.path().join("config"), folder.path().join("trace"));
        std::fs::write(&config, CONFIG).map_err(|error| format!("{}: {error}", config.display()))?;
        let command = |program: &Path| crate::traced::command(program, folder.path());
        let start_ns = boot_ns();
        let mut daemons = Vec::new();
        let mut recorder = command(&side.recorder);
        if side.is_ours() {
            recorder.arg0("tracebox");
        } else {
            let mut service = Running::start(&mut command(&side.service), folder.path().join("service.log"))?;
            let socket = folder.path().join("c.sock");
            // Without the pause of `wait`, which would count.
            let deadline = Instant::now() + DEADLINE;
            while UnixStream::connect(&socket).is_err() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_micros(200));
            }
            service.wait("the service listens", || UnixStream::connect(&socket).is_ok())?;
            daemons.push(Running::start(&mut command(&side.probes), folder.path().join("probes.log"))?);
            daemons.push(service);
        }
        recorder.arg("-c").arg(&config).arg("--txt").arg("-o").arg(&trace);
        let (first_ns, _) = record_from(recorder, &trace)?;
        if number > 0 {
            waits.cold_first_event.push(first_ns.saturating_sub(start_ns) as f64 / 1e6);
        }
    }
    Ok(())
}

/// Records. Returns the milliseconds from the start of the command to the first event, and from
/// Ctrl-C to the end of the command.
fn record(command: Command, trace: &Path) -> Result<(f64, f64), String> {
    let start_ns = boot_ns();
    let (first_ns, file) = record_from(command, trace)?;
    Ok((first_ns.saturating_sub(start_ns) as f64 / 1e6, file.as_secs_f64() * 1e3))
}

/// Records. Returns the time of the first event, and the time from Ctrl-C to the end of the
/// command.
fn record_from(mut command: Command, trace: &Path) -> Result<(u64, Duration), String> {
    let _ = std::fs::remove_file(trace);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child =
        command.spawn().map_err(|error| format!("{}: {error}", Path::new(command.get_program()).display()))?;
    std::thread::sleep(RECORDING);
    let begin = Instant::now();
    interrupt(&child);
    let status = child.wait().map_err(|error| format!("wait: {error}"))?;
    let elapsed = begin.elapsed();
    if !status.success() {
        let mut said = String::new();
        let _ = child.stderr.take().map(|mut stderr| std::io::Read::read_to_string(&mut stderr, &mut said));
        return Err(format!("{}: {status}\n{said}", Path::new(command.get_program()).display()));
    }
    let bytes = std::fs::read(trace).map_err(|error| format!("{}: {error}", trace.display()))?;
    let first = first_event_ns(&bytes).ok_or("the trace has no list of processes")?;
    Ok((first, elapsed))
}

/// Returns the time of the first list of processes.
fn first_event_ns(trace: &[u8]) -> Option<u64> {
    let packets = Fields::new(trace).filter(|field| field.id == 1);
    let times = packets.filter_map(|packet| {
        let packet = packet.as_bytes();
        let has_tree = Fields::new(packet).any(|field| field.id == PROCESS_TREE);
        let time = Fields::new(packet).find(|field| field.id == TIMESTAMP)?;
        has_tree.then(|| time.as_u64())
    });
    times.min()
}

fn interrupt(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::INT);
    }
}

fn boot_ns() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
