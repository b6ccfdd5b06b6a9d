//! Traces that a command reads.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use esatto_convert::{ChromeJson, JsonSummary};

use crate::failure::{Attempt as _, Failure};

/// A trace that is read as packets, whatever its format.
pub(crate) enum TraceInput {
    Perfetto(Box<dyn BufRead>),
    /// Chrome JSON, which becomes packets.
    Json(Box<ChromeJson>),
}

impl TraceInput {
    /// Opens a trace. `-` is standard input.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let what = || format!("cannot read the trace {}", path.display());
        let mut file: Box<dyn BufRead> = if path.as_os_str() == "-" {
            Box::new(io::stdin().lock())
        } else {
            let file = File::open(path).attempt(what)?;
            if file.metadata().attempt(what)?.is_dir() {
                return Err(Failure::new(what(), "it is a folder"));
            }
            Box::new(BufReader::with_capacity(1 << 16, file))
        };
        let first = file.fill_buf().attempt(what)?.iter().copied().find(|byte| !byte.is_ascii_whitespace());
        match first {
            Some(b'{' | b'[') => Ok(Self::Json(Box::new(ChromeJson::read(file, 0).attempt(what)?))),
            _ => Ok(Self::Perfetto(file)),
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        matches!(self, Self::Json(_))
    }

    /// Tells what of a file of another format is not in the packets. Call it after the last one.
    pub(crate) fn losses(&self) -> Vec<String> {
        match self {
            Self::Perfetto(_) => Vec::new(),
            Self::Json(json) => json_losses(json.summary()),
        }
    }
}

impl Read for TraceInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Perfetto(file) => file.read(buffer),
            Self::Json(json) => json.read(buffer),
        }
    }
}

fn json_losses(summary: &JsonSummary) -> Vec<String> {
    let mut losses = Vec::new();
    if let Some(error) = &summary.error {
        losses.push(format!("the file is damaged: {error}; everything before is converted"));
    }
    if summary.is_torn {
        losses.push("the file is torn: it ends inside a value; everything before is converted".to_owned());
    }
    let counts = [
        (summary.malformed, "values that are no events are left out"),
        (summary.without_time, "events without a time, or with a negative one, are left out"),
        (summary.incomplete, "events without a duration, an id or a value are left out"),
        (summary.unmatched_ends, "ends without a begin are left out"),
        (summary.dropped_slices, "slices that are nested too deep are left out"),
        (summary.unbound_flows, "ends of arrows without a slice are left out"),
        (summary.overlapping, "slices overlap others of their thread; they are on further tracks"),
    ];
    losses.extend(counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    for (phase, count) in &summary.skipped {
        losses.push(format!("{count} events of the phase {phase:?} have no meaning in a Perfetto trace"));
    }
    if summary.has_system_events {
        losses.push("kernel events in \"systemTraceEvents\" are not converted".to_owned());
    }
    losses
}
