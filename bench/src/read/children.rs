//! Measured programs: their time, their memory, and what a browser shows.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::cargo;

const BROWSER: &str = "/usr/bin/chromium";

/// A page that lets a browser work.
const PAGE: &str = "data:text/html,<script>let n=0;setInterval(()=>{for(let i=0;i<200;i++){\
    const e=document.createElement('p');e.textContent=n++;document.body.prepend(e)}},4)</script>";

/// Until a recording of the browser is called failed.
const RECORDING_TIMEOUT: Duration = Duration::from_secs(60);

/// Between two looks at the memory of a program.
const LOOK: Duration = Duration::from_millis(5);

/// A program's run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) seconds: f64,
    /// Most resident memory at a time.
    pub(crate) peak_bytes: f64,
}

/// Runs a program on one processor, to its end.
pub(crate) fn run_pinned(command: &mut Command) -> Result<Run, String> {
    let name = Path::new(command.get_program()).display().to_string();
    let mut pinned = Command::new("taskset");
    pinned.arg("-c").arg(last_cpu().to_string()).arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => pinned.env(key, value),
            None => pinned.env_remove(key),
        };
    }
    pinned.stdout(Stdio::null()).stderr(Stdio::piped());
    let begin = Instant::now();
    let mut child = pinned.spawn().map_err(|error| format!("taskset: {error}"))?;
    let mut peak_bytes = 0.0_f64;
    let status = loop {
        peak_bytes = peak_bytes.max(high_water(&child));
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => std::thread::sleep(LOOK),
            Err(error) => return Err(format!("{name}: {error}")),
        }
    };
    let seconds = begin.elapsed().as_secs_f64();
    if status.success() {
        return Ok(Run { seconds, peak_bytes });
    }
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = std::io::Read::read_to_string(&mut stderr, &mut said);
    }
    Err(format!("{name}: {status}: {}", said.lines().next().unwrap_or_default()))
}

/// The kernel's own work is mostly on the first processor.
fn last_cpu() -> usize {
    std::thread::available_parallelism().map_or(0, |cpus| cpus.get() - 1)
}

/// Returns the most memory that a program has had so far, in bytes; 0 if it has ended.
fn high_water(child: &Child) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) * 1024.0
}

/// Lets a browser record its own start, and returns the bytes of the trace.
pub(super) fn record_browser(path: &Path) -> Result<u64, String> {
    let folder = tempfile::Builder::new().prefix("bench").tempdir().map_err(|error| format!("folder: {error}"))?;
    let mut command = Command::new(BROWSER);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--trace-startup=*", "--trace-startup-format=proto"]);
    command.args(["--trace-startup-duration=8", "--enable-logging=none"]);
    command.arg(format!("--trace-startup-file={}", path.display()));
    command.arg(format!("--user-data-dir={}", folder.path().display())).arg(PAGE);
    let _ = std::fs::remove_file(path);
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(|error| format!("{BROWSER}: {error}"))?;
    let begin = Instant::now();
    let mut bytes = 0;
    // The file is there whole once it stops growing.
    while begin.elapsed() < RECORDING_TIMEOUT {
        std::thread::sleep(Duration::from_secs(2));
        let now = std::fs::metadata(path).map_or(0, |file| file.len());
        if now > 0 && now == bytes {
            break;
        }
        bytes = now;
    }
    let _ = child.kill();
    let _ = child.wait();
    if bytes == 0 { Err("it wrote nothing".to_owned()) } else { Ok(bytes) }
}

/// Times that a browser needs for a page.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Frames {
    /// Seconds.
    pub(super) ready: f64,
    /// Milliseconds.
    pub(super) median: f64,
    /// Milliseconds.
    pub(super) slowest: f64,
    /// Milliseconds.
    pub(super) search: f64,
}

/// Opens the page in a browser, pans, and searches a word.
pub(super) fn frames(page: &Path, word: &str) -> Result<Frames, String> {
    let folder = match std::env::var_os("PEERS_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(std::env::var_os("HOME").ok_or("no HOME")?).join(".cache/perfetto-peers"),
    };
    let modules = folder.join("node");
    if !modules.join("node_modules").exists() {
        return Err("cargo xtask peers browser".to_owned());
    }
    let script = cargo::root().join("src/read/frames.mjs");
    let output = Command::new("node")
        .args([&script, &modules, Path::new(BROWSER), page])
        .arg(word)
        .output()
        .map_err(|error| format!("node: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("frames.mjs: {error}"))
}
