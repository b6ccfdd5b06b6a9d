//! Traces that a command reads.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use esatto_convert::{ChromeJson, JsonSummary};

use crate::failure::{Attempt as _, Failure};
use crate::file_kind;

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
        let beginning = file_kind::beginning(&mut file).attempt(what)?;
        let is_json = is_json(&beginning);
        let file: Box<dyn BufRead> = Box::new(Cursor::new(beginning).chain(file));
        if is_json {
            return Ok(Self::Json(Box::new(ChromeJson::read(file, 0).attempt(what)?)));
        }
        Ok(Self::Perfetto(file))
    }

    /// Returns whether a trace can be read only once: standard input, or a pipe.
    pub(crate) fn is_read_once(path: &Path) -> bool {
        path.as_os_str() == "-" || fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir())
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

/// Returns whether a file that begins like this is JSON.
fn is_json(beginning: &[u8]) -> bool {
    // A mark of the byte order may come first.
    let text = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    // The tag of a packet is a line feed, and its length may be that of a bracket.
    matches!(first, Some(b'{' | b'[')) && !file_kind::may_be_trace(beginning)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_any_length_are_no_json() {
        for length in 2..300 {
            // The number of a sequence, again and again.
            let mut packet = [0x50, 1].repeat(length / 2);
            if length % 2 == 1 {
                packet.splice(..2, [0x50, 0x81, 0]);
            }
            let mut trace = Vec::new();
            esatto_trace::write_packet(&mut trace, &packet).unwrap();
            assert!(!is_json(&trace), "{length}");
        }
        for json in ["[", "\n[{}]", " {\"traceEvents\":[]}", "\u{feff}[{}]", "\n{\n\"traceEvents\": []\n}\n"] {
            assert!(is_json(json.as_bytes()), "{json}");
        }
    }
}
