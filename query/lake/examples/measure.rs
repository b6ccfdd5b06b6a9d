//! Measures an export: `measure TRACE…`. Prints, for each trace, the speed in time of a processor,
//! which other programs of the machine change little, and the size of its files relative to the
//! trace after `gzip`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use esatto_lake::{ExportOptions, Exporter};

fn main() -> ExitCode {
    let traces: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if traces.is_empty() {
        eprintln!("measure: name traces");
        return ExitCode::from(2);
    }
    for trace in &traces {
        if let Err(error) = measure(trace) {
            eprintln!("measure: {}: {error}", trace.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
fn measure(trace: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let lake = folder.path().join("lake");
    let mut options = ExportOptions::default();
    options.jobs = 1;
    options.memory_limit = u64::MAX;
    let (begin, busy) = (Instant::now(), cpu_seconds());
    let report = Exporter::open(&lake.to_string_lossy(), options, &|| {})?.run(&[trace.to_owned()], &|_| {})?;
    let (seconds, busy) = (begin.elapsed().as_secs_f64(), cpu_seconds() - busy);
    if report.exported != 1 {
        return Err(format!("it was not exported: {:?}", report.left_out).into());
    }
    let gzip = Command::new("gzip").arg("-c").arg(trace).stdout(Stdio::piped()).spawn()?;
    let gzipped = gzip.wait_with_output()?.stdout.len();
    let (bytes, lake_bytes) = (report.trace_bytes as f64 / 1e6, report.lake_bytes as f64 / 1e6);
    println!(
        "{}: {bytes:.1} MB, {} rows: {seconds:.2} s, {busy:.2} s of a processor: {:.1} MB/s, {:.2} M rows/s; \
         {lake_bytes:.1} MB of Parquet, {:.2} of {:.1} MB gzipped",
        trace.display(),
        report.rows,
        bytes / busy,
        report.rows as f64 / 1e6 / busy,
        lake_bytes * 1e6 / gzipped as f64,
        gzipped as f64 / 1e6,
    );
    Ok(())
}

/// Seconds for which processors have worked for this program; 0 if the system does not tell.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default();
    // Fields 14 and 15, in hundredths of a second.
    fields.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
