//! Start, recording and summary of the demo.

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
use crate::commands::{info, report};
use crate::console::{self, say};
use crate::failure::{Attempt as _, Failure};
use crate::private_service::PrivateService;
use crate::progress::{Progress, Size};
use crate::recording_session::{RecordingSession, Transfer};
use crate::shell_word::ShellWord;
use crate::stop_signal::StopSignal;
use crate::trace_config;
use crate::trace_output::Output;

/// Time between two updates of the progress.
const TICK: Duration = Duration::from_millis(100);
/// Time that the pipeline may take to finish files after the recording time.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// The smallest size of a pipe.
const PIPE_BYTES: usize = 4096;
/// Folders that Linux machines have; missing ones are skipped.
const DEFAULT_ROOTS: [&str; 4] = ["/usr/include", "/usr/share", "/usr/lib", "/etc"];

pub(crate) fn run(args: &args::Demo) -> Result<ExitCode, Failure> {
    let is_stdout = Output::is_stdout(&args.out);
    if is_stdout || args.out.metadata().is_ok_and(|meta| !meta.is_file()) {
        let name = if is_stdout { "stdout".into() } else { args.out.to_string_lossy() };
        let what = format!("cannot write the demo to {name}");
        return Err(Failure::new(what, "the demo reads the file again").hint("name a file with -o FILE"));
    }
    for root in &args.roots {
        // A folder without readable files is no mistake, but one that does not exist is.
        std::fs::read_dir(root).attempt(|| format!("cannot read the folder {}", root.display()))?;
    }
    let mut stop = StopSignal::install().attempt(|| "cannot handle signals".to_owned())?;
    let service = PrivateService::start()?;
    let output = Output::create(&args.out)?;
    output.require_old_trace().map_err(|failure| failure.hint("choose another file with -o FILE"))?;
    let mut config = trace_config::track_events(true);
    trace_config::complete(&mut config, None)?;
    let mut recorder = RecordingSession::start(service.consumer(), config, Transfer::Drain, Some(output))?;

    say!("Recording three processes that read, hash, compress and index files of this machine.");
    let mut pipeline = Pipeline::start(args, &service)?;
    let progress = Progress::start(Some(args.time));
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
    let recorded = watched.and_then(|()| recorder.finish(&progress, drop));
    drop(progress);
    let recorded = recorded?;
    if let Some(error) = recorded.error {
        return Err(Failure::new("the service ended the recording", error));
    }
    let result = pipeline.result().map_or_else(String::new, |result| format!("{}\n", Line(result)));
    let table = table(&info::read(&args.out)?);
    let name = Line(args.out.display());
    let page = match report::write_beside(&args.out) {
        Ok(page) => format!(
            "To see the trace, open {0} in a browser; it needs no network:\n  xdg-open {0}\nOr open \
             https://ui.perfetto.dev and drop {name} on the page. The file stays in your browser.",
            ShellWord::new(&page)
        ),
        Err(failure) => format!(
            "There is no report: {failure}\nTo see the trace, open https://ui.perfetto.dev and drop {name} on the \
             page. The file stays in your browser."
        ),
    };
    let text = format!("{result}{table}\n{page}\nTo summarize it, run `esatto info {}`.\n", ShellWord::new(&args.out));
    console::print(&text).attempt(|| "cannot show the result".to_owned())?;
    Ok(ExitCode::SUCCESS)
}

/// Formats the content of the trace by process.
fn table(summary: &Summary) -> String {
    let mut text = format!("\n  {:<16}{:>9}{:>9}{:>10}\n", "process", "threads", "slices", "counters");
    for process in &summary.processes {
        let name = Line(process.name.as_deref().unwrap_or("?")).to_string();
        let counters = summary.counters.iter().filter(|counter| counter.pid == Some(process.pid)).count();
        text += &format!("  {name:<16}{:>9}{:>9}{counters:>10}\n", process.threads.len(), process.slices);
    }
    let losses = summary.losses().iter().fold(0_u64, |all, loss| all.saturating_add(loss.number));
    let facts = [
        ("slices", format!("{}, {} of them instants", summary.slices.count, summary.slices.instants)),
        ("nested", format!("{} levels deep", summary.slices.max_depth)),
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
    /// Standard output of the last started process.
    result: Option<std::process::ChildStdout>,
}

impl Pipeline {
    fn start(args: &args::Demo, service: &PrivateService) -> Result<Self, Failure> {
        let program = std::env::current_exe().attempt(|| "cannot find the file of this program".to_owned())?;
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
                    // Parcels in a pipe are still processed after the time is over, so the pipes
                    // are small. If the kernel refuses the size, the demo takes longer.
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

    /// Returns whether all processes have ended.
    fn has_ended(&mut self) -> bool {
        self.children.iter_mut().all(|child| matches!(child.try_wait(), Ok(Some(_)) | Err(_)))
    }

    /// Returns the last process's output, if all have ended.
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
