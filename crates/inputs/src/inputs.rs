//! The files that a command names, as traces.

use core::cell::RefCell;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use esatto_trace::{Engine, Error as TraceError, MergePlan, ReadOptions, Summary};

use crate::archive::{self, Data, Listing};
use crate::error::Error;
use crate::file_kind::{FileKind, beginning, is_named_like_trace};
use crate::inflate::{self, Bytes, allowed};
use crate::manifest::{MAX_MANIFEST_BYTES, read_manifest, without_dot};
use crate::member::{Compression, Losses, Member, Source};
use crate::section::Section;
use crate::temporary;

/// Remarks on entries that are left out which are kept one by one.
const MAX_NOTES: usize = 20;

/// Options of opening.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The files are pieces of one trace, in this order.
    pub are_pieces: bool,
    /// Traces are opened several times. One from a pipe takes a temporary file for it.
    pub are_read_again: bool,
}

impl Options {
    /// Creates options. With `are_pieces`, the files are pieces of one trace.
    pub fn new(are_pieces: bool) -> Self {
        Self { are_pieces, ..Self::default() }
    }

    /// Returns options by which each trace can be opened several times, also one from a pipe.
    #[must_use]
    pub fn with_reading_again(self) -> Self {
        Self { are_read_again: true, ..self }
    }
}

/// Traces that are read as one.
#[derive(Debug, Default)]
pub struct Inputs {
    members: Vec<Member>,
    plan: MergePlan,
    has_manifest: bool,
    is_archive: bool,
    /// Streams go to temporary files, so that they can be read again.
    are_read_again: bool,
    notes: Vec<String>,
    more_notes: usize,
    errors: Vec<(String, String)>,
    losses: RefCell<Losses>,
}

impl Inputs {
    /// Opens traces, or an archive of them. `-` is standard input.
    ///
    /// # Errors
    ///
    /// A file cannot be opened, there is no trace, or the manifest breaks a rule.
    pub fn open(paths: &[PathBuf]) -> Result<Self, Error> {
        Self::open_with(paths, Options::default())
    }

    /// Opens traces, or an archive of them, with options.
    ///
    /// # Errors
    ///
    /// As those of [`open`](Self::open).
    pub fn open_with(paths: &[PathBuf], options: Options) -> Result<Self, Error> {
        let mut inputs = Self::default();
        if options.are_pieces {
            inputs.members = vec![pieces(paths)?];
            return Ok(inputs);
        }
        let is_alone = paths.len() == 1;
        inputs.are_read_again = options.are_read_again || !is_alone;
        for path in paths {
            inputs.add_file(path, is_alone)?;
        }
        inputs.arrange()?;
        Ok(inputs)
    }

    /// Opens a trace, or an archive of traces, that is open already.
    ///
    /// # Errors
    ///
    /// As those of [`open`](Self::open).
    pub fn of_file(name: &str, file: File) -> Result<Self, Error> {
        let mut inputs = Self::default();
        let opened = Opened::file(file, name)?;
        inputs.add(name, opened, true)?;
        inputs.arrange()?;
        Ok(inputs)
    }

    /// Returns the traces, in the order in which they are read.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns the rules by which they become one.
    pub fn plan(&self) -> &MergePlan {
        &self.plan
    }

    /// Returns whether they are of an archive.
    pub fn is_archive(&self) -> bool {
        self.is_archive
    }

    /// Returns whether there are several traces, or one with rules.
    pub fn is_merged(&self) -> bool {
        self.members.len() != 1 || self.has_manifest
    }

    /// Returns the only trace; none if there are several.
    pub fn single(&self) -> Option<&Member> {
        match self.members.as_slice() {
            [member] => Some(member),
            _ => None,
        }
    }

    /// Returns remarks on what is left out.
    pub fn notes(&self) -> Vec<String> {
        let more = (self.more_notes > 0).then(|| format!("{} more entries are left out", self.more_notes));
        self.notes.iter().cloned().chain(more).collect()
    }

    /// Returns errors of the archive: names of files, and reasons.
    pub fn errors(&self) -> &[(String, String)] {
        &self.errors
    }

    /// Returns what of files of other formats is not in their packets: names of files, and texts.
    /// Call it after reading.
    pub fn losses(&self) -> Losses {
        self.losses.borrow().clone()
    }

    /// Reads all traces as one, into tables.
    ///
    /// # Errors
    ///
    /// The only trace cannot be opened. Errors of further ones are in the summary.
    pub fn read(&self) -> Result<(Engine, Summary), Error> {
        self.read_with(&ReadOptions::default())
    }

    /// Reads all traces as one, for their summary only.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn summary(&self) -> Result<Summary, Error> {
        self.read_with(&ReadOptions::without_kernel_events()).map(|(_, summary)| summary)
    }

    fn read_with(&self, options: &ReadOptions) -> Result<(Engine, Summary), Error> {
        let (engine, mut summary) = match self.single() {
            Some(member) if !self.is_merged() => {
                let mut reader = member.open()?;
                let part = esatto_trace::Part {
                    stored_bytes: member.stored_bytes(),
                    ..esatto_trace::Part::new(member.name(), &mut reader)
                };
                let read = Summary::read_part(part, options);
                let losses = reader.losses().into_iter().map(|loss| (member.name().to_owned(), loss));
                self.losses.borrow_mut().extend(losses);
                read
            }
            _ => {
                let names: Vec<String> = self.members.iter().map(|member| member.name.clone()).collect();
                let open = |position: usize| self.members[position].part(&self.losses);
                Summary::read_parts_with_engine(&self.plan, &names, open)
            }
        };
        for (name, why) in &self.errors {
            summary.errors.push(TraceError::Archive { name: name.clone(), why: why.clone() });
        }
        Ok((engine, summary))
    }

    /// Reads a trace alone.
    ///
    /// # Errors
    ///
    /// It cannot be opened.
    pub fn read_alone(&self, member: &Member) -> Result<(Engine, Summary), Error> {
        let mut reader = member.open()?;
        let part =
            esatto_trace::Part { stored_bytes: member.stored_bytes(), ..esatto_trace::Part::new("", &mut reader) };
        let read = Summary::read_part(part, &ReadOptions::default());
        self.losses.borrow_mut().extend(reader.losses().into_iter().map(|loss| (member.name().to_owned(), loss)));
        Ok(read)
    }

    fn add_file(&mut self, path: &Path, is_alone: bool) -> Result<(), Error> {
        let name = path.to_string_lossy().into_owned();
        let opened = Opened::new(path, &name)?;
        self.add(&name, opened, is_alone)
    }

    fn add(&mut self, name: &str, opened: Opened, is_alone: bool) -> Result<(), Error> {
        let (kind, inner) = (opened.kind, opened.inner);
        if inner.is_archive() {
            if !is_alone {
                let why = "an archive is read alone; add the other traces to it, or unpack it";
                return Err(Error::unusable(name, why));
            }
            let section = opened.into_archive(name)?;
            self.is_archive = true;
            return self.add_archive(name, inner, &section);
        }
        if inner == FileKind::Manifest {
            if is_alone {
                return Err(Error::unusable(name, "it is a manifest, and has no events; name the traces after it"));
            }
            let text = opened.into_text(name)?;
            return self.set_manifest(&text);
        }
        let source = opened.into_source(name, self.are_read_again)?;
        let name = name.to_owned();
        let compression = compression(kind);
        self.members.push(Member { name, source, compression, is_json: inner == FileKind::Json, stored_bytes: None });
        Ok(())
    }

    fn add_archive(&mut self, name: &str, kind: FileKind, section: &Section) -> Result<(), Error> {
        let Listing { entries, notes, damage } = archive::list(name, kind, section)?;
        for note in notes {
            self.note(note);
        }
        self.errors.extend(damage.map(|why| (name.to_owned(), why)));
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by(|&a, &b| entries[a].name.cmp(&entries[b].name));
        for index in order {
            let entry = &entries[index];
            let own = without_dot(&entry.name).to_owned();
            let found = entry_kind(&entry.data);
            let (kind, inner) = match found {
                Ok(kinds) => kinds,
                Err(error) => {
                    self.errors.push((own, error.to_string()));
                    continue;
                }
            };
            match inner {
                FileKind::Manifest => {
                    let mut text = Vec::new();
                    let limit = MAX_MANIFEST_BYTES as u64 + 1;
                    let stream = inflated(entry.data.open(), compression(kind), entry.data.stored_bytes());
                    stream.take(limit).read_to_end(&mut text).map_err(Error::io(&own))?;
                    self.set_manifest(&text)?;
                }
                _ if is_trace(inner, &own) => self.members.push(Member {
                    name: own,
                    source: Source::Data(entry.data.clone()),
                    compression: compression(kind),
                    is_json: inner == FileKind::Json,
                    stored_bytes: Some(entry.data.stored_bytes()),
                }),
                FileKind::Zip | FileKind::Tar => {
                    self.errors.push((own, "an archive in an archive is not read".to_owned()));
                }
                FileKind::Empty => self.note(format!("{own} is left out: it is empty")),
                _ => {
                    self.note(format!("{own} is left out: it is no trace"));
                }
            }
        }
        if self.members.is_empty() {
            let why = match (self.errors.first(), self.notes.first()) {
                (Some((name, why)), _) => format!("there is no trace in it: {name}: {why}"),
                (None, Some(note)) => format!("there is no trace in it: {note}"),
                (None, None) => "there is no trace in it".to_owned(),
            };
            return Err(Error::unusable(name, why));
        }
        Ok(())
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < MAX_NOTES { self.notes.push(note) } else { self.more_notes += 1 }
    }

    fn set_manifest(&mut self, text: &[u8]) -> Result<(), Error> {
        if self.has_manifest {
            return Err(Error::Manifest("there are several manifests".to_owned()));
        }
        self.plan = read_manifest(text)?;
        self.has_manifest = true;
        Ok(())
    }

    /// Orders the traces, and finds those that the manifest names.
    fn arrange(&mut self) -> Result<(), Error> {
        // Perfetto traces first: they may have clocks that others need. Compressed ones follow.
        self.members.sort_by_key(|member| match (member.is_json, member.compression) {
            (false, None) => 0,
            (_, Some(_)) => 1,
            (true, None) => 2,
        });
        let mut names = HashSet::new();
        for index in 0..self.members.len() {
            let name = self.members[index].name.clone();
            let is_ruled = self.plan.rules(&name).is_some();
            if !names.insert(name.clone()) && is_ruled {
                return Err(Error::Manifest(format!("{name:?} is the name of several files")));
            }
            if is_ruled || self.is_archive || !self.has_manifest {
                continue;
            }
            // A manifest beside the files has their names without folders.
            let short = Path::new(&name).file_name().map(|name| name.to_string_lossy().into_owned());
            if let Some(short) = short.filter(|short| self.plan.rules(short).is_some()) {
                if !names.insert(short.clone()) {
                    return Err(Error::Manifest(format!("{short:?} is the name of several files")));
                }
                self.members[index].name = short;
            }
        }
        let missing: Vec<String> = self
            .plan
            .files
            .iter()
            .filter(|rules| !names.contains(&rules.path))
            .map(|rules| rules.path.clone())
            .collect();
        for path in missing {
            let is_needed =
                self.plan.files.iter().filter_map(|rules| rules.clocks.as_ref()).any(|rule| rule.to_file == path);
            if is_needed {
                let why = format!("clocks: sync_to.file names {path:?}, which is not there");
                return Err(Error::Manifest(why));
            }
            self.note(format!("the manifest names {path:?}, which is not there"));
        }
        Ok(())
    }
}

/// Opens pieces of one trace.
fn pieces(paths: &[PathBuf]) -> Result<Member, Error> {
    let mut pieces = Vec::new();
    for path in paths {
        let name = path.to_string_lossy().into_owned();
        let opened = Opened::new(path, &name)?;
        if opened.inner.is_archive() || opened.inner == FileKind::Json {
            return Err(Error::unusable(&name, "it is no piece of a Perfetto trace"));
        }
        let file = match opened.file {
            OpenedFile::Section(section) => section,
            OpenedFile::Stream(stream) => temporary::copy(stream).and_then(Section::whole).map_err(Error::io(&name))?,
        };
        pieces.push(Data::Plain(file));
    }
    let name = paths.first().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Member { name, source: Source::Pieces(pieces), compression: None, is_json: false, stored_bytes: None })
}

enum OpenedFile {
    Section(Section),
    Stream(Bytes),
}

/// A file that was opened, and its kind.
struct Opened {
    file: OpenedFile,
    kind: FileKind,
    /// The kind of its content, if it is compressed.
    inner: FileKind,
}

impl Opened {
    fn new(path: &Path, name: &str) -> Result<Self, Error> {
        if path.as_os_str() == "-" {
            return Self::stream(BufReader::new(io::stdin())).map_err(Error::io(name));
        }
        Self::file(File::open(path).map_err(Error::io(name))?, name)
    }

    fn file(file: File, name: &str) -> Result<Self, Error> {
        let about = file.metadata().map_err(Error::io(name))?;
        if about.is_dir() {
            return Err(Error::Io { name: name.to_owned(), source: io::Error::other("it is a folder") });
        }
        if !about.is_file() {
            return Self::stream(BufReader::with_capacity(1 << 16, file)).map_err(Error::io(name));
        }
        let section = Section::whole(file).map_err(Error::io(name))?;
        let (kind, inner) = entry_kind(&Data::Plain(section.clone())).map_err(Error::io(name))?;
        Ok(Self { file: OpenedFile::Section(section), kind, inner })
    }

    fn stream(mut file: impl io::BufRead + 'static) -> io::Result<Self> {
        let begin = beginning(&mut file)?;
        let kind = FileKind::of(&begin);
        let inner = inner_kind(kind, &begin);
        Ok(Self { file: OpenedFile::Stream(Box::new(Cursor::new(begin).chain(file))), kind, inner })
    }

    fn bytes(self) -> Bytes {
        match self.file {
            OpenedFile::Section(section) => Box::new(BufReader::with_capacity(1 << 16, section)),
            OpenedFile::Stream(stream) => stream,
        }
    }

    fn stored_bytes(&self) -> u64 {
        match &self.file {
            OpenedFile::Section(section) => section.len(),
            OpenedFile::Stream(_) => u64::MAX,
        }
    }

    /// Returns the archive as a file, in a temporary one if it is compressed or a stream.
    fn into_archive(self, name: &str) -> Result<Section, Error> {
        match (self.file, compression(self.kind)) {
            (OpenedFile::Section(section), None) => Ok(section),
            (OpenedFile::Section(section), compression) => {
                let stored = section.len();
                let stream = inflated(Box::new(BufReader::with_capacity(1 << 16, section)), compression, stored);
                temporary::copy(stream).and_then(Section::whole).map_err(Error::io(name))
            }
            (OpenedFile::Stream(stream), None) => {
                temporary::copy(stream).and_then(Section::whole).map_err(Error::io(name))
            }
            (OpenedFile::Stream(stream), compression) => {
                // Its size bounds that of its content.
                let file = temporary::copy(stream).and_then(Section::whole).map_err(Error::io(name))?;
                let stored = file.len();
                let stream = inflated(Box::new(BufReader::with_capacity(1 << 16, file)), compression, stored);
                temporary::copy(stream).and_then(Section::whole).map_err(Error::io(name))
            }
        }
    }

    fn into_text(self, name: &str) -> Result<Vec<u8>, Error> {
        let (compression, stored) = (compression(self.kind), self.stored_bytes());
        let mut text = Vec::new();
        let stream = inflated(self.bytes(), compression, stored);
        stream.take(MAX_MANIFEST_BYTES as u64 + 1).read_to_end(&mut text).map_err(Error::io(name))?;
        Ok(text)
    }

    /// Returns the bytes of a trace. If it `is_read_again`, a stream goes to a temporary file.
    fn into_source(self, name: &str, is_read_again: bool) -> Result<Source, Error> {
        let is_compressed_json = self.inner == FileKind::Json && self.kind != FileKind::Json;
        match self.file {
            OpenedFile::Section(section) => Ok(Source::Data(Data::Plain(section))),
            OpenedFile::Stream(stream) if is_read_again || is_compressed_json => {
                let file = temporary::copy(stream).and_then(Section::whole).map_err(Error::io(name))?;
                Ok(Source::Data(Data::Plain(file)))
            }
            OpenedFile::Stream(stream) => Ok(Source::Stream(RefCell::new(Some(stream)))),
        }
    }
}

fn compression(kind: FileKind) -> Option<Compression> {
    match kind {
        FileKind::Gzip => Some(Compression::Gzip),
        FileKind::Zstd => Some(Compression::Zstd),
        _ => None,
    }
}

fn inflated(file: Bytes, compression: Option<Compression>, stored_bytes: u64) -> Bytes {
    match compression {
        Some(Compression::Gzip) => inflate::gzip(file, allowed(stored_bytes)),
        Some(Compression::Zstd) => inflate::zstd(file, allowed(stored_bytes)),
        None => file,
    }
}

/// Returns whether a file in an archive is read as a trace: by its content, or by its name if it
/// is of no known kind.
fn is_trace(kind: FileKind, name: &str) -> bool {
    matches!(kind, FileKind::Trace | FileKind::Json) || kind == FileKind::Unknown && is_named_like_trace(name)
}

/// Returns the kind of a file, and that of its content.
fn entry_kind(data: &Data) -> io::Result<(FileKind, FileKind)> {
    let begin = beginning(data.open())?;
    let kind = FileKind::of(&begin);
    Ok((kind, inner_kind(kind, &begin)))
}

/// Returns the kind of the content of a file that begins like this. One level of compression is
/// looked into.
fn inner_kind(kind: FileKind, begin: &[u8]) -> FileKind {
    let Some(compression) = compression(kind) else { return kind };
    let mut stream = inflated(Box::new(Cursor::new(begin.to_vec())), Some(compression), begin.len() as u64);
    // The beginning ends within the compressed data.
    let mut content = Vec::new();
    let mut buffer = [0; 4096];
    while content.len() < begin.len() {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(read) => content.extend_from_slice(&buffer[..read]),
        }
    }
    match FileKind::of(&content) {
        // Its first packet may be longer than what was inflated.
        FileKind::Unknown if content.starts_with(b"\x0a") => FileKind::Trace,
        FileKind::Unknown | FileKind::Empty | FileKind::Gzip | FileKind::Zstd => FileKind::Unknown,
        inner => inner,
    }
}
