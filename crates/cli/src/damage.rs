//! Damages of a trace whose packets a command reads.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use esatto_trace::escape::Line;
use esatto_trace::{Error, PacketReader};

use crate::console::say;

/// Exit status of a command that has written a result of a trace that it could not read as a whole.
const INCOMPLETE: u8 = 3;

/// Errors of a trace.
#[derive(Debug, Default)]
pub(crate) struct Damage {
    /// The error that ended the reading, else the first one, and whether it ended the reading.
    error: Option<(String, bool)>,
    number: u64,
    is_torn: bool,
    /// The error is of one of several traces.
    is_of_part: bool,
    unread_bytes: Option<u64>,
}

impl Damage {
    pub(crate) fn note(&mut self, error: &Error) {
        self.number += 1;
        self.is_torn |= error.is_end_of_file();
        let ends = error.ends_reading();
        self.is_of_part |= matches!(error, Error::InPart { .. });
        if ends || self.error.is_none() {
            self.error = Some((error.to_string(), ends));
        }
    }

    /// Counts the bytes that were not read. Call it after the last packet.
    pub(crate) fn end(&mut self, packets: &mut PacketReader<impl Read>) {
        self.unread_bytes = packets.count_unread_bytes();
    }

    pub(crate) fn with_unread_bytes(mut self, bytes: Option<u64>) -> Self {
        self.unread_bytes = bytes;
        self
    }

    /// Returns the error, if there is one.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_ref().map(|(error, _)| &**error)
    }

    /// Tells how much of a file is in the result: it is `done`, such as "cut".
    pub(crate) fn say(&self, file: &Path, done: &str) {
        let Some((error, ends)) = &self.error else { return };
        let file = Line(file.display());
        let error = Line(error);
        let more = match self.number {
            1 => String::new(),
            number => format!(" ({number} errors)"),
        };
        match (ends, self.unread_bytes) {
            (true, _) if self.is_of_part => {
                say!("{file} is damaged: {error}{more}. What follows in that trace is not {done}, everything else is");
            }
            (true, _) if self.is_torn => say!("{file} is torn: {error}{more}. Everything before it is {done}"),
            (true, Some(bytes)) if bytes > 0 => {
                say!(
                    "{file} is damaged: {error}{more}. Everything before it is {done}; {bytes} bytes after it are not"
                );
            }
            (true, _) => say!("{file} is damaged: {error}{more}. Everything before it is {done}, and nothing after it"),
            (false, _) => say!("{file} is damaged: {error}{more}. Everything else is {done}"),
        }
    }

    /// Returns the exit status of a command that has written the result. A file that ends within a
    /// packet has no more than the result.
    pub(crate) fn exit_code(&self) -> ExitCode {
        let is_only_torn = self.is_torn && self.number == 1;
        if self.error.is_none() || is_only_torn { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) }
    }

    /// Adds the damages of another trace.
    pub(crate) fn join(&mut self, other: Self) {
        if self.error.is_none() || (self.is_torn && self.number == 1) {
            *self = other;
        }
    }
}
