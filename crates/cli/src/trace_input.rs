//! Traces that a command reads.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use esatto_inputs::{Error, Inputs, Member, MemberReader, Options};
use esatto_trace::PacketReader;
use esatto_trace::escape::Line;

use crate::args::Traces;
use crate::console::say;
use crate::failure::Failure;

/// Opens the traces of a command, and tells what is left out of an archive.
pub(crate) fn open(traces: &Traces) -> Result<Inputs, Failure> {
    let inputs = Inputs::open_with(&traces.files, Options::new(traces.are_pieces)).map_err(failed)?;
    say_notes(&inputs);
    Ok(inputs)
}

/// Opens a trace, or an archive of traces.
pub(crate) fn open_file(path: &Path) -> Result<Inputs, Failure> {
    let inputs = Inputs::open(&[path.to_owned()]).map_err(failed)?;
    say_notes(&inputs);
    Ok(inputs)
}

/// Opens a trace, or an archive of traces, that is read several times.
pub(crate) fn open_to_read_again(path: &Path) -> Result<Inputs, Failure> {
    let options = Options::default().with_reading_again();
    let inputs = Inputs::open_with(&[path.to_owned()], options).map_err(failed)?;
    say_notes(&inputs);
    Ok(inputs)
}

fn say_notes(inputs: &Inputs) {
    for note in inputs.notes() {
        say!("{}", Line(note));
    }
}

/// Tells what of files of other formats is not in the packets. Call it after reading.
pub(crate) fn say_losses(inputs: &Inputs) {
    for (name, loss) in inputs.losses() {
        say!("{}: {}", Line(name), Line(loss));
    }
}

/// Returns the failure of opening traces.
pub(crate) fn failed(error: Error) -> Failure {
    match error {
        Error::Io { name, source } => Failure::new(format!("cannot read the trace {name}"), source),
        Error::Unusable { name, why } => Failure::new(format!("cannot read the trace {name}"), why),
        Error::Manifest(why) => {
            let failure = Failure::new("cannot use the manifest", why);
            failure.hint("docs/how-to/merge-traces.md tells what it may say")
        }
        error => Failure::new("cannot read the trace", error),
    }
}

/// A trace that is read as packets, whatever its format.
#[derive(Debug)]
pub(crate) struct TraceInput {
    reader: MemberReader,
    stored_bytes: Option<u64>,
}

impl TraceInput {
    /// Opens a trace. `-` is standard input. An archive must have one trace.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        Self::of(&open_file(path)?, path)
    }

    /// Opens the only trace of some inputs.
    pub(crate) fn of(inputs: &Inputs, path: &Path) -> Result<Self, Failure> {
        let Some(member) = inputs.single() else {
            let number = inputs.members().len();
            let failure = Failure::new(
                format!("cannot use {}", path.display()),
                format!("it is {number} traces, and this command changes one"),
            );
            return Err(failure.hint("unpack the archive, and name one of its traces"));
        };
        if let Some((name, why)) = inputs.errors().first() {
            say!("{} is damaged: {}", Line(name), Line(why));
        }
        Self::again(member)
    }

    /// Opens a trace of some inputs once more, without a word about them.
    pub(crate) fn again(member: &Member) -> Result<Self, Failure> {
        Ok(Self { reader: member.open().map_err(failed)?, stored_bytes: member.stored_bytes() })
    }

    /// Returns whether a trace can be read only once: standard input, or a pipe.
    pub(crate) fn is_read_once(path: &Path) -> bool {
        path.as_os_str() == "-" || fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir())
    }

    pub(crate) fn is_json(&self) -> bool {
        self.reader.is_json()
    }

    /// Tells what of a file of another format is not in the packets. Call it after the last one.
    pub(crate) fn losses(&self) -> Vec<String> {
        self.reader.losses()
    }

    /// Reads its packets.
    pub(crate) fn packets(&mut self) -> PacketReader<&mut Self> {
        let stored_bytes = self.stored_bytes;
        PacketReader::new(self).with_stored_bytes(stored_bytes)
    }
}

impl Read for TraceInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

/// Returns the name under which traces are shown, and beside which a result is written.
pub(crate) fn first(traces: &Traces) -> &PathBuf {
    &traces.files[0]
}
