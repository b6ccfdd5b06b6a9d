//! The command `esatto info`: summarizes the content of a trace.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;

use esatto_trace::escape::Line;
use esatto_trace::{Error, Summary};

use crate::args;
use crate::console;
use crate::failure::{Attempt as _, Failure};
use crate::shell_word::ShellWord;
use crate::trace_config;
use crate::trace_output::is_being_written;

pub(crate) fn run(args: &args::Info) -> Result<ExitCode, Failure> {
    let mut summary = read(&args.file)?;
    let is_foreign = summary.good_packets() == 0 && !summary.errors.is_empty();
    if !args.json && !summary.errors.is_empty() && trace_config::is_config(&args.file) {
        let name = Line(args.file.display());
        let hint = format!("`esatto record -c {}` records with it", ShellWord::new(&args.file));
        return Err(Failure::new(format!("{name} is not a Perfetto trace"), "it is a recording config").hint(hint));
    }
    if is_foreign && !args.json {
        return Err(foreign(&args.file, &summary));
    }
    if let Ok(message) = trace_config::message() {
        summary = summary.with_config_text(|config| esatto_text_format::to_text(&message, config));
    }
    let text = if args.json { summary.to_json_text() } else { summary.to_string() };
    console::print(&text).attempt(|| "cannot show the summary".to_owned())?;
    match summary.errors.last() {
        None => Ok(ExitCode::SUCCESS),
        Some(_) if is_foreign => Err(foreign(&args.file, &summary)),
        // The report has the errors.
        Some(last) => Err(damaged(&args.file, &summary, last)),
    }
}

/// Returns the error for a file without a packet that can be read.
fn foreign(file: &Path, summary: &Summary) -> Failure {
    let file = file.display();
    match summary.errors.first() {
        Some(Error::Foreign { what, .. }) => Failure::new(format!("{file} is not a Perfetto trace"), what),
        Some(Error::Io { source, .. }) => Failure::new(format!("cannot read the trace {file}"), source),
        Some(error @ Error::Empty) => Failure::new(format!("{file} is not a Perfetto trace"), error),
        Some(error) => Failure::new(format!("{file} is not a Perfetto trace, or its first packet is damaged"), error),
        None => Failure::new(format!("{file} is not a Perfetto trace"), "it has no packets"),
    }
}

/// Returns the error for a file of which a part can be read.
fn damaged(file: &Path, summary: &Summary, last: &Error) -> Failure {
    let good = summary.good_packets();
    let place = match summary.errors.len() as u64 + summary.more_errors {
        1 => format!("at byte {}", last.offset()),
        count => format!("in {count} places, the last one at byte {}", last.offset()),
    };
    let what = format!("{} is damaged {place}", file.display());
    Failure::new(what, format!("the report is about the {good} packets that can be read"))
}

/// Reads a trace to its end, or to the point where it cannot be read further. `-` is standard
/// input.
pub(crate) fn read(path: &Path) -> Result<Summary, Failure> {
    if path.as_os_str() == "-" {
        return Ok(Summary::read(std::io::stdin().lock()));
    }
    let file = File::open(path).attempt(|| format!("cannot read the trace {}", path.display()))?;
    let mut summary = Summary::read(BufReader::new(&file));
    if summary.lacks_end() && is_being_written(&file) {
        summary.set_being_written();
    }
    Ok(summary)
}
