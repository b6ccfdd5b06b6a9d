//! The command `esatto info`: summarizes the content of a trace.

use std::fs::File;
use std::io::{self, BufReader, Write as _};
use std::path::Path;
use std::process::ExitCode;

use esatto_trace::Summary;
use esatto_trace::escape::Line;

use crate::args;
use crate::failure::{Attempt as _, Failure};
use crate::trace_config;

pub(crate) fn run(args: &args::Info) -> Result<ExitCode, Failure> {
    let mut summary = read(&args.file)?;
    if let Ok(message) = trace_config::message() {
        summary = summary.with_config_text(|config| esatto_text_format::to_text(&message, config));
    }
    let text = if args.json { summary.to_json_text() } else { summary.to_string() };
    match io::stdout().write_all(text.as_bytes()) {
        // A closed pipe, as in `esatto info … | head`, is no error.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {}
        result => result.attempt(|| "cannot show the summary".to_owned())?,
    }
    if summary.errors.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    for error in &summary.errors {
        eprintln!("esatto: {}", Line(format_args!("{}: {error}", args.file.display())));
    }
    if summary.more_errors > 0 {
        eprintln!("esatto: … and {} more errors", summary.more_errors);
    }
    Ok(ExitCode::FAILURE)
}

/// Reads a trace to its end, or to the point where it cannot be read further.
pub(crate) fn read(path: &Path) -> Result<Summary, Failure> {
    let file = File::open(path).attempt(|| format!("cannot read the trace {}", path.display()))?;
    Ok(Summary::read(BufReader::new(file)))
}
