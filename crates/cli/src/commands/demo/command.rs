//! The demo as its user sees it: starts the pipeline, records it, and tells what to look at.

use core::time::Duration;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use esatto_trace::Summary;
use esatto_trace::escape::Line;

use crate::args::{self, Stage};
use crate::commands::info;
use crate::failure::{Attempt as _, Failure};
use crate::private_service::PrivateService;
use crate::progress::{Progress, Size};
use crate::recording_session::{RecordingSession, Transfer};
use crate::stop_signal::StopSignal;
use crate::trace_config;
use crate::trace_output::Output;

/// How often the progress is shown.
const TICK: Duration = Duration::from_millis(100);
/// What is under way when the time is over may take so much longer.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// The smallest a pipe can be.
const PIPE_BYTES: usize = 4096;
/// Folders that every Linux machine has; those that are missing are no problem.
const DEFAULT_ROOTS: [&str; 4] = ["/usr/include", "/usr/share", "/usr/lib", "/etc"];

pub(crate) fn run(args: &args::Demo) -> Result<ExitCode, Failure> {
    if Output::is_stdout(&args.out) {
        let hint = "name a file with -o FILE";
        return Err(Failure::new("cannot write the demo to stdout", "it is read again afterwards").hint(hint));
    }
    let mut stop = StopSignal::install().attempt(|| "cannot handle signals".to_owned())?;
    let service = PrivateService::start()?;
    let output = Output::create(&args.out)?;
    let mut config = trace_config::all_track_events();
    trace_config::complete(&mut config, None)?;
    let mut recorder = RecordingSession::start(service.consumer(), config, Transfer::Drain, Some(output))?;

    eprintln!(
        "Three processes read, hash, compress and index the files of this machine, and are traced while they do."
    );
    let mut pipeline = Pipeline::start(args, &service)?;
    let mut progress = Progress::start(Some(args.time));
    let deadline = Instant::now() + args.time + DRAIN_TIMEOUT;
    let watched = loop {
        if recorder.has_ended() || stop.received() || pipeline.has_ended() || Instant::now() > deadline {
            break Ok(());
        }
        progress.show(&recorder.counts());
        if let Err(failure) = recorder.watch(TICK, &[stop.as_fd()]) {
            break Err(failure);
        }
    };
    let recorded = watched.and_then(|()| recorder.finish());
    drop(progress);
    let recorded = recorded?;
    if let Some(error) = recorded.error {
        return Err(Failure::new("the service ended the recording", error));
    }
    if let Some(result) = pipeline.result() {
        println!("{}", Line(result));
    }
    println!("{}", table(&info::read(&args.out)?));
    println!(
        "How to look at it: open https://ui.perfetto.dev and drop {} on it (it stays in your browser),",
        Line(args.out.display())
    );
    println!("or ask for its content with `esatto info {}`.", Line(args.out.display()));
    Ok(ExitCode::SUCCESS)
}

/// What is in the trace, by process.
fn table(summary: &Summary) -> String {
    let mut text = format!("\n  {:<16}{:>9}{:>9}{:>10}\n", "process", "threads", "slices", "counters");
    for process in &summary.processes {
        let name = Line(process.name.as_deref().unwrap_or("?")).to_string();
        let counters = summary.counters.iter().filter(|counter| counter.pid == Some(process.pid)).count();
        text += &format!("  {name:<16}{:>9}{:>9}{counters:>10}\n", process.threads.len(), process.slices);
    }
    let losses: u64 = summary.losses().iter().map(|loss| loss.number).sum();
    let facts = [
        ("slices", format!("{}, {} of them instants", summary.slices.count, summary.slices.instants)),
        ("nested", format!("{} levels deep", summary.slices.max_depth + 1)),
        ("counter values", summary.counter_values().to_string()),
        ("flows", format!("{} arrows from stage to stage", summary.flows)),
        ("annotations", summary.annotations.to_string()),
        ("packets", format!("{} in {}", summary.packets, Size(summary.packet_bytes))),
        ("duration", format!("{:.1} s", summary.duration_ns().unwrap_or(0) as f64 / 1e9)),
        ("losses", losses.to_string()),
    ];
    for (name, value) in facts {
        text += &format!("\n  {name:<16}{value}");
    }
    text + "\n"
}

/// The three processes.
#[derive(Debug)]
struct Pipeline {
    children: Vec<Child>,
    /// The last one's standard output.
    result: Option<std::process::ChildStdout>,
}

impl Pipeline {
    fn start(args: &args::Demo, service: &PrivateService) -> Result<Self, Failure> {
        let program = std::env::current_exe().attempt(|| "cannot find this program's own file".to_owned())?;
        let mut pipeline = Self { children: Vec::new(), result: None };
        for stage in Stage::ALL {
            let mut command = Command::new(&program);
            // The first argument is the name of the process in the trace.
            command.arg0(format!("demo-{}", stage.name()));
            command.arg("demo-stage").arg(stage.name());
            if stage == Stage::Scanner {
                command.arg("--time").arg(format!("{}ms", args.time.as_millis())).arg("--").args(roots(args));
            }
            service.announce_to(&mut command);
            let input = match pipeline.result.take() {
                Some(previous) => {
                    // What waits in a pipe is still worked on after the time is over: let it be little. If the
                    // kernel has another opinion, the demo takes longer.
                    let _ = rustix::pipe::fcntl_setpipe_size(&previous, PIPE_BYTES);
                    Stdio::from(OwnedFd::from(previous))
                }
                None => Stdio::null(),
            };
            let child = command.stdin(input).stdout(Stdio::piped()).spawn();
            let mut child = child.attempt(|| format!("cannot start the {}", stage.name()))?;
            pipeline.result = child.stdout.take();
            pipeline.children.push(child);
        }
        Ok(pipeline)
    }

    /// Whether all of them have ended.
    fn has_ended(&mut self) -> bool {
        self.children.iter_mut().all(|child| matches!(child.try_wait(), Ok(Some(_)) | Err(_)))
    }

    /// What the last one has to say, if it came to its end.
    fn result(&mut self) -> Option<String> {
        if !self.has_ended() {
            return None;
        }
        let mut text = String::new();
        self.result.take()?.take(4096).read_to_string(&mut text).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        for child in &mut self.children {
            // They have ended, unless the demo was interrupted.
            let _: io::Result<()> = child.kill();
            let _ = child.wait();
        }
    }
}

fn roots(args: &args::Demo) -> Vec<PathBuf> {
    if args.roots.is_empty() { DEFAULT_ROOTS.map(PathBuf::from).to_vec() } else { args.roots.clone() }
}
