//! Measured programs, and the sizes of what they write.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Between two looks at a program.
const LOOK: Duration = Duration::from_millis(5);

/// A program's run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) seconds: f64,
    /// Time of processors, as it was when it was last looked at.
    pub(super) cpu_seconds: f64,
    /// Most resident memory at a time.
    pub(super) peak_bytes: f64,
}

/// Runs a program to its end.
pub(super) fn run(command: &mut Command) -> Result<Run, String> {
    let name = Path::new(command.get_program()).display().to_string();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let begin = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
    let (mut peak_bytes, mut cpu_seconds) = (0.0_f64, 0.0_f64);
    let status = loop {
        peak_bytes = peak_bytes.max(high_water(child.id()));
        cpu_seconds = cpu_seconds.max(cpu(child.id()));
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => std::thread::sleep(LOOK),
            Err(error) => return Err(format!("{name}: {error}")),
        }
    };
    let seconds = begin.elapsed().as_secs_f64();
    if status.success() {
        return Ok(Run { seconds, cpu_seconds, peak_bytes });
    }
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = std::io::Read::read_to_string(&mut stderr, &mut said);
    }
    Err(format!("{name}: {status}: {}", said.lines().next().unwrap_or_default()))
}

/// Returns the most memory that a program has had so far, in bytes; 0 if it has ended.
pub(super) fn high_water(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) * 1024.0
}

/// Returns the seconds that processors have worked for a program, its ended threads included.
fn cpu(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default();
    // Fields 14 and 15, in hundredths of a second.
    fields.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Returns the bytes of all files of a lake.
pub(super) fn size_of(folder: &Path) -> Result<f64, String> {
    let show = |error| format!("{}: {error}", folder.display());
    let mut bytes = 0.0;
    for entry in std::fs::read_dir(folder).map_err(show)? {
        let path = entry.map_err(show)?.path();
        let is_schema = path.file_name().is_some_and(|name| name == "_schema");
        bytes += match std::fs::metadata(&path).map_err(show)? {
            _ if is_schema => 0.0,
            metadata if metadata.is_dir() => size_of(&path)?,
            metadata => metadata.len() as f64,
        };
    }
    Ok(bytes)
}

/// Returns the bytes of a file after `gzip`.
pub(super) fn gzipped(file: &Path) -> Result<f64, String> {
    let mut child = Command::new("gzip")
        .arg("-c")
        .arg(file)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("gzip: {error}"))?;
    let mut output = child.stdout.take().ok_or("gzip has no output")?;
    let bytes = std::io::copy(&mut output, &mut std::io::sink()).map_err(|error| format!("gzip: {error}"))?;
    let status = child.wait().map_err(|error| format!("gzip: {error}"))?;
    if status.success() { Ok(bytes as f64) } else { Err(format!("gzip: {status}")) }
}
