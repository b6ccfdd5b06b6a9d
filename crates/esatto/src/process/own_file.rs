//! The file of a recording: no other process that records itself writes it at the same time.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use esatto_protozero::Fields;
use esatto_protozero::wire::decode_varint;
use esatto_schema::TraceReader;

use crate::diagnostics;
use crate::error::Error;
use crate::os::file_lock;
use crate::os::fork::OwnedByParent;
use crate::os::process_info::job_age;
use crate::session::named_file::NamedFile;
use crate::track_uuid;

/// A file that this process writes alone.
///
/// Processes notice each other by a lock on the file. Two that start at the same moment cannot both
/// have it, and it ends with its process, however that ends. The lock has a handle of its own,
/// which forked children close: otherwise they would keep the lock.
pub(super) struct OwnFile {
    pub(super) path: PathBuf,
    /// `None` for a pipe and the like.
    named: Option<Box<NamedFile>>,
    _of_this_process: OwnedByParent,
    _lock: File,
}

/// Names of its own that a process tries.
const MAX_OWN_NAMES: u32 = 100;

/// Treatment of a file that exists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Existing {
    Empty,
    /// Kept if it has content.
    KeepTrace,
    Keep,
}

impl OwnFile {
    /// Creates the file, or empties it if it is a trace. If another process is writing it, or if
    /// this process has written it before (perhaps as another program, before an `exec`), or the
    /// one that it was forked from, creates a file whose name ends in the number of this process,
    /// and in a further number if there is one already: processes of several containers have equal
    /// numbers.
    pub(super) fn create(wanted: &Path, is_of_parent: bool) -> Result<(Self, File), Error> {
        let existing = if is_of_parent { Existing::KeepTrace } else { Existing::Empty };
        let what = match Self::try_create(wanted.to_owned(), existing)? {
            Ok(created) => return Ok(created),
            Err(Kept::Written) => format!("another process is writing {}", wanted.display()),
            Err(Kept::Earlier) => format!("{} has what this process recorded before", wanted.display()),
            Err(Kept::OfParent) => {
                format!("{} has what the process recorded that this one was forked from", wanted.display())
            }
        };
        let process = std::process::id();
        for number in 1..=MAX_OWN_NAMES {
            let mut own = wanted.as_os_str().to_owned();
            own.push(match number {
                1 => format!(".{process}"),
                _ => format!(".{process}.{number}"),
            });
            if let Ok(created) = Self::try_create(own.into(), Existing::Keep)? {
                diagnostics::say_once(format!("{what}: this one writes {}", created.0.path.display()));
                return Ok(created);
            }
        }
        let names = format!("{MAX_OWN_NAMES} files with the number of this process");
        Err(Error::state(&format!("{what}, and there are {names}: remove them")))
    }

    /// Returns why the file must be kept, if it must.
    fn try_create(path: PathBuf, existing: Existing) -> Result<Result<(Self, File), Kept>, Error> {
        let failed = |error| Error::create_file(&path, error);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let open = || options.open(&path).map_err(failed);
        let lock = match existing {
            Existing::Empty | Existing::KeepTrace => open()?,
            Existing::Keep => match options.clone().create_new(true).open(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(Err(Kept::Earlier)),
                opened => opened.map_err(failed)?,
            },
        };
        let is_file = lock.metadata().is_ok_and(|metadata| metadata.is_file());
        if is_file {
            // Without locks in this file system, processes do not notice each other.
            if file_lock::lock(&lock).is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
                return Ok(Err(Kept::Written));
            }
            if existing != Existing::Keep {
                let begin = beginning(&lock);
                if !may_be_trace(&begin) {
                    return Err(Error::no_trace(&path));
                }
                if has_events_of_this_process(&begin) {
                    return Ok(Err(Kept::Earlier));
                }
                if !begin.is_empty() {
                    if existing == Existing::KeepTrace {
                        return Ok(Err(Kept::OfParent));
                    }
                    tell_if_of_same_job(&lock, &path);
                }
            }
            lock.set_len(0).map_err(failed)?;
        }
        let file = if is_file { open()? } else { lock.try_clone().map_err(failed)? };
        let named = NamedFile::of(&file, &path).map(Box::new);
        let _of_this_process = OwnedByParent::of(&lock);
        Ok(Ok((Self { path, named, _of_this_process, _lock: lock }, file)))
    }

    /// Fails if another program has removed, replaced or emptied the file.
    pub(super) fn require_trace(&self) -> Result<(), Error> {
        self.named.as_ref().map_or(Ok(()), |named| named.require_trace())
    }
}

/// Reason why a file is not emptied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// Another process is writing it.
    Written,
    /// It is an earlier recording of this process, or of another process with this number.
    Earlier,
    /// It is a recording of the process that this one was forked from.
    OfParent,
}

/// Tells that a trace is replaced which was written since the job of this process began, so
/// probably by another program of the job: `a; b` in a script, or a launcher and its worker.
fn tell_if_of_same_job(trace: &File, path: &Path) {
    let age = trace.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|time| time.elapsed().ok());
    if let Some(age) = age.filter(|&age| job_age().is_some_and(|job| age < job)) {
        diagnostics::say_once(format!(
            "{} replaces the trace that another program of this job has written until {:.1} s ago; to keep both, set \
             ESATTO_TRACE to a name with `%p`, the number of the process",
            path.display(),
            age.as_secs_f64()
        ));
    }
}

/// First byte of a trace: the tag of a packet.
const PACKET_TAG: u8 = 0x0a;

/// Bytes at the begin of a trace that contain the first event, and before it the process.
const BEGIN_BYTES: u64 = 1 << 20;

/// Returns the begin of a file. It is empty if the file cannot be read.
fn beginning(file: &File) -> Vec<u8> {
    let mut begin = Vec::new();
    if file.take(BEGIN_BYTES).read_to_end(&mut begin).is_err() {
        begin.clear();
    }
    begin
}

/// Returns whether a file that begins like this is empty or a trace, as far as its first packet
/// tells. The packet may be torn.
fn may_be_trace(begin: &[u8]) -> bool {
    let Some(rest) = begin.strip_prefix(&[PACKET_TAG]) else { return begin.is_empty() };
    let Some((length, size)) = decode_varint(rest) else { return false };
    let packet = &rest[size..];
    let end = usize::try_from(length).unwrap_or(usize::MAX);
    match packet.get(..end) {
        Some(whole) => Fields::new(whole).check().is_ok() && packet.get(end).is_none_or(|&next| next == PACKET_TAG),
        None => Fields::new(packet).next().is_some(),
    }
}

/// Returns whether a file begins with events of this process. Its track id comes from its number
/// and its start time, which an `exec` does not change.
fn has_events_of_this_process(begin: &[u8]) -> bool {
    let process = track_uuid::process_uuid();
    let mut tracks = TraceReader::new(begin).packet().filter_map(|packet| packet.track_descriptor()?.uuid());
    tracks.any(|track| track == process)
}
