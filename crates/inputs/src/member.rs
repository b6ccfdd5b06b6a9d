//! A trace among the inputs.

use core::cell::RefCell;
use core::fmt;
use std::io::{self, BufRead, Read};

use esatto_convert::{ChromeJson, JsonSummary};
use esatto_trace::Part;

use crate::archive::Data;
use crate::error::Error;
use crate::inflate::{self, Bytes, allowed};

/// Compression of a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
}

/// Bytes of a trace as they are stored.
pub(crate) enum Source {
    Data(Data),
    /// Pieces of a trace, one after the other.
    Pieces(Vec<Data>),
    /// A stream, which can be read once.
    Stream(RefCell<Option<Bytes>>),
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data(data) => data.fmt(f),
            Self::Pieces(pieces) => pieces.fmt(f),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl Source {
    fn open(&self) -> io::Result<Bytes> {
        match self {
            Self::Data(data) => Ok(data.open()),
            Self::Pieces(pieces) => {
                let empty: Bytes = Box::new(io::empty());
                Ok(pieces.iter().fold(empty, |before, piece| Box::new(before.chain(piece.open()))))
            }
            Self::Stream(stream) => {
                let stream = stream.borrow_mut().take();
                stream.ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "it can be read only once"))
            }
        }
    }
}

/// A trace among the inputs.
#[derive(Debug)]
pub struct Member {
    pub(crate) name: String,
    pub(crate) source: Source,
    /// JSON that is compressed is inflated for its reader. The reader of packets does that itself.
    pub(crate) compression: Option<Compression>,
    pub(crate) is_json: bool,
    /// Bytes that it takes in an archive.
    pub(crate) stored_bytes: Option<u64>,
}

impl Member {
    /// Returns its name: that of the file, or that in the archive.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether it is JSON, which becomes packets.
    pub fn is_json(&self) -> bool {
        self.is_json
    }

    /// Returns how many bytes it takes in an archive, if it is in one.
    pub fn stored_bytes(&self) -> Option<u64> {
        self.stored_bytes
    }

    /// Opens it. A stream can be opened once.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is JSON without events.
    pub fn open(&self) -> Result<MemberReader, Error> {
        let file = self.source.open().map_err(Error::io(&self.name))?;
        if !self.is_json {
            return Ok(MemberReader::Perfetto(file));
        }
        let stored = match &self.source {
            Source::Data(data) => data.stored_bytes(),
            // Its size is known when it was read.
            Source::Pieces(_) | Source::Stream(_) => u64::MAX,
        };
        let file = match self.compression {
            Some(Compression::Gzip) => inflate::gzip(file, allowed(stored)),
            Some(Compression::Zstd) => inflate::zstd(file, allowed(stored)),
            None => file,
        };
        let json = ChromeJson::read(file, 0).map_err(|error| Error::unusable(&self.name, error.to_string()))?;
        Ok(MemberReader::Json(Box::new(json)))
    }

    /// Opens it for an engine. An error is one of reading. `losses` gets those of the format.
    pub(crate) fn part<'l>(&self, losses: &'l RefCell<Losses>) -> Part<Box<dyn Read + 'l>> {
        let file: Box<dyn Read + 'l> = match self.open() {
            Ok(reader) => Box::new(Tracked { name: self.name.clone(), reader, losses }),
            Err(error) => Box::new(Failed(Some(error))),
        };
        Part { has_clocks: !self.is_json, stored_bytes: self.stored_bytes, ..Part::new(self.name.clone(), file) }
    }
}

/// Packets of a trace, whatever its format.
pub enum MemberReader {
    /// A Perfetto trace, which may be compressed.
    Perfetto(Box<dyn BufRead>),
    /// Chrome JSON, which becomes packets.
    Json(Box<ChromeJson>),
}

impl fmt::Debug for MemberReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_json() { "Json" } else { "Perfetto" })
    }
}

impl MemberReader {
    /// Returns whether it is JSON.
    pub fn is_json(&self) -> bool {
        matches!(self, Self::Json(_))
    }

    /// Tells what of a file of another format is not in the packets. Call it after the last one.
    pub fn losses(&self) -> Vec<String> {
        match self {
            Self::Perfetto(_) => Vec::new(),
            Self::Json(json) => json_losses(json.summary()),
        }
    }
}

impl Read for MemberReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Perfetto(file) => file.read(buffer),
            Self::Json(json) => json.read(buffer),
        }
    }
}

/// Content of files of other formats that is not in their packets: names of files, and texts.
pub type Losses = Vec<(String, String)>;

/// A reader that notes the losses of its format at its end.
struct Tracked<'l> {
    name: String,
    reader: MemberReader,
    losses: &'l RefCell<Losses>,
}

impl Read for Tracked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

impl Drop for Tracked<'_> {
    fn drop(&mut self) {
        let mut losses = self.losses.borrow_mut();
        for loss in self.reader.losses() {
            let loss = (self.name.clone(), loss);
            // A trace may be read twice.
            if !losses.contains(&loss) {
                losses.push(loss);
            }
        }
    }
}

/// A file that could not be opened.
struct Failed(Option<Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match self.0.take() {
            Some(error) => Err(io::Error::other(error)),
            None => Ok(0),
        }
    }
}

/// Tells what of Chrome JSON is not in the packets.
pub fn json_losses(summary: &JsonSummary) -> Vec<String> {
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
