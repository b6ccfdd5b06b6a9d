//! The commands `esatto-query export` and `esatto-query lake`.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use esatto_lake::{CheckOptions, ExportOptions, Exporter, Lake, Report};

use crate::lake_args::{ExportArgs, LakeAction, LakeArgs, files_of, partition_keys};
use crate::program::{BROKEN_TRACES, Failure, NAMED_TRACES, half_of_memory};

pub(crate) fn export(args: &ExportArgs) -> Result<ExitCode, Failure> {
    let files = files_of(&args.traces)?;
    let mut options = ExportOptions::default();
    options.partition = args.partition.as_deref().map(partition_keys).transpose()?;
    options.attributes = args.attribute.iter().cloned().collect();
    if let Some(jobs) = args.jobs {
        options.jobs = jobs.into();
    }
    options.keeps_broken = crate::Broken::from(args.broken) == crate::Broken::Keep;
    options.memory_limit = args.memory_limit.unwrap_or_else(|| half_of_memory() / 2) as u64;
    let place = &args.to;
    let on_wait = || eprintln!("esatto-query: another export is writing into {place}; waiting for its end");
    let exporter = Exporter::open(place, options, &on_wait).map_err(|error| error.to_string())?;
    let report = exporter.run(&files, &|_| {}).map_err(|error| error.to_string())?;
    report_traces(&report.left_out, "left out");
    report_traces(&report.kept_broken, "exported as far as it can be read");
    if !args.quiet {
        print_line(&summary(&report))?;
    }
    let has_defects = !report.left_out.is_empty() || !report.kept_broken.is_empty();
    Ok(if has_defects { ExitCode::from(BROKEN_TRACES) } else { ExitCode::SUCCESS })
}

fn report_traces(traces: &[(PathBuf, String)], fate: &str) {
    for (path, why) in traces.iter().take(NAMED_TRACES) {
        eprintln!("esatto-query: {}: {why}; {fate}", path.display());
    }
    if traces.len() > NAMED_TRACES {
        eprintln!("esatto-query: … and {} more, {fate}", traces.len() - NAMED_TRACES);
    }
}

fn summary(report: &Report) -> String {
    let mut parts = Vec::new();
    let recovered = report.recovered;
    if recovered.completed > 0 {
        parts.push(format!("{} of an interrupted export completed", traces(recovered.completed)));
    }
    parts.push(match report.exported {
        0 => "no new trace".to_owned(),
        count => {
            let (from, to) = (megabytes(report.trace_bytes), megabytes(report.lake_bytes));
            format!("{} exported: {} rows, {from} as {to}", traces(count), report.rows)
        }
    });
    if report.present > 0 {
        parts.push(format!("{} in the lake already", traces(report.present)));
    }
    if !report.kept_broken.is_empty() {
        parts.push(format!("{} damaged", traces(report.kept_broken.len())));
    }
    if !report.left_out.is_empty() {
        parts.push(format!("{} left out", traces(report.left_out.len())));
    }
    parts.join("; ")
}

fn traces(count: usize) -> String {
    if count == 1 { "1 trace".to_owned() } else { format!("{count} traces") }
}

#[allow(clippy::cast_precision_loss, reason = "one decimal is shown")]
fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

pub(crate) fn lake(args: &LakeArgs) -> Result<ExitCode, Failure> {
    let LakeAction::Check { lake, quick, repair } = &args.action;
    let mut options = CheckOptions::default();
    options.is_quick = *quick;
    options.repairs = *repair;
    let report = Lake::check(lake, options).map_err(|error| error.to_string())?;
    for problem in &report.problems {
        let mark = if problem.is_repaired { "repaired: " } else { "" };
        print_line(&format!("{mark}{}: {}", problem.path, problem.text))?;
    }
    if report.is_being_written {
        print_line("an export is writing: its traces are left out")?;
    }
    let open = report.problems.iter().filter(|problem| !problem.is_repaired).count();
    let state = match (open, report.problems.len()) {
        (0, 0) => "sound".to_owned(),
        (0, count) => format!("repaired, {count} problems"),
        (1, _) => "1 problem".to_owned(),
        (open, _) => format!("{open} problems"),
    };
    let size = megabytes(report.bytes);
    print_line(&format!("{}, {} sound files, {size}: {state}", traces(report.traces), report.sound_files))?;
    Ok(if open == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints a line. A reader that has gone is no error.
fn print_line(line: &str) -> Result<(), Failure> {
    match writeln!(io::stdout(), "{line}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure(format!("cannot write the output: {error}")))
        }
        _ => Ok(()),
    }
}
