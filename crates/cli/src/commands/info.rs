//! The command `esatto info`: summarizes the content of a trace.

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

use esatto_inputs::Inputs;
use esatto_trace::escape::Line;
use esatto_trace::{Error, Summary};

use crate::args;
use crate::console;
use crate::failure::{Attempt as _, Failure};
use crate::shell_word::ShellWord;
use crate::trace_config;
use crate::trace_input::{self, first};
use crate::trace_output::is_being_written;

pub(crate) fn run(args: &args::Info) -> Result<ExitCode, Failure> {
    let path = first(&args.traces);
    let inputs = trace_input::open(&args.traces)?;
    let mut summary = read_inputs(&inputs, path)?;
    let is_foreign = !inputs.is_merged() && summary.good_packets() == 0 && !summary.errors.is_empty();
    if !args.json && !summary.errors.is_empty() && trace_config::is_config(path) {
        let name = Line(path.display());
        let hint = format!("`esatto record -c {}` records with it", ShellWord::new(path));
        return Err(Failure::new(format!("{name} is not a Perfetto trace"), "it is a recording config").hint(hint));
    }
    if is_foreign && !args.json {
        return Err(foreign(path, &summary));
    }
    if let Ok(message) = trace_config::message() {
        summary = summary.with_config_text(|config| esatto_text_format::to_text(&message, config));
    }
    let text = if args.json { summary.to_json_text() } else { summary.to_string() };
    console::print(&text).attempt(|| "cannot show the summary".to_owned())?;
    trace_input::say_losses(&inputs);
    if let Some(failure) = unread(path, &summary) {
        return Err(failure);
    }
    match summary.errors.iter().rfind(|error| !error.is_of_temporary_file()) {
        None => Ok(ExitCode::SUCCESS),
        Some(_) if is_foreign => Err(foreign(path, &summary)),
        // The report has the errors.
        Some(last) if inputs.is_merged() => {
            let why = format!("the report is about the {} packets that can be read", summary.good_packets());
            Err(Failure::new(last.to_string(), why))
        }
        Some(last) => Err(damaged(path, &summary, last)),
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

/// Returns the error for a trace that may be sound, but could not be read wholly for want of room.
/// Damages of the file come before it.
pub(crate) fn unread(file: &Path, summary: &Summary) -> Option<Failure> {
    let error = summary.errors.last().filter(|_| summary.errors.iter().all(Error::is_of_temporary_file))?;
    Some(Failure::new(file.display().to_string(), error).hint(error.remedy().unwrap_or_default()))
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
    read_inputs(&trace_input::open_file(path)?, path)
}

/// Reads traces to their ends. `path` is the first file, or the archive.
fn read_inputs(inputs: &Inputs, path: &Path) -> Result<Summary, Failure> {
    let mut summary = inputs.summary().map_err(trace_input::failed)?;
    set_being_written(&mut summary, path);
    Ok(summary)
}

/// Notes if a recording still writes the only file.
pub(crate) fn set_being_written(summary: &mut Summary, path: &Path) {
    if summary.lacks_end() && path.is_file() && File::open(path).is_ok_and(|file| is_being_written(&file)) {
        summary.set_being_written();
    }
}
