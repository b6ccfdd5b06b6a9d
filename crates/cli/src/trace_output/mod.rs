//! Trace file that the command writes itself.

mod file_id;
mod file_names;
mod kind;
mod named_pipe;
mod new_file;
mod slow_disk;
mod sole_writer;
mod target;

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use esatto_inputs::{beginning, may_be_trace};
use rustix::fs::{AtFlags, CWD, linkat};
use rustix::io::Errno;

pub(crate) use self::file_id::{FileId, lost_file};
use self::file_names::{default_names, next_name};
use self::kind::Kind;
pub(crate) use self::new_file::NewFile;
use self::sole_writer::{SoleWriter, unlock};
pub(crate) use self::sole_writer::{is_being_written, lock};
use self::target::{create_beside, create_new, nameless, open, plan, proc_path, remove};
use crate::failure::{Attempt as _, Failure};

/// Packets are collected up to this size before they are written.
const BATCH_BYTES: usize = 256 * 1024;
/// Larger packets cannot be encoded (`docs/spec/protozero.md` §2).
pub(crate) const MAX_PACKET_BYTES: usize = 1 << 28;
/// Tag of `Trace.packet`: field 1, length delimited.
const PACKET_TAG: u8 = 0x0a;

/// A trace that is being written: a `Trace` message that grows packet by packet
/// (`docs/spec/wire-protocol.md` §13).
///
/// An existing file keeps its content until the first packet is written, so that a failed attempt
/// destroys nothing. It is then emptied, and not replaced by another file. So links to it, its
/// owner and its mode stay, no right to write into its folder is needed, and `tail -f` sees the
/// trace grow.
///
/// A new file appears with its first packet. So a recording that is killed before leaves no empty
/// file. If another file has its name by then, that one stays, whoever made it: the trace gets the
/// next free name.
///
/// A named file ends at a packet boundary at every moment, even after a failed write. So it is
/// always a readable trace.
#[derive(Debug)]
pub(crate) struct Output {
    file: File,
    name: PathBuf,
    /// The user's name for the file, if another program has taken it during the recording.
    wanted_name: Option<PathBuf>,
    /// This program has chosen the name, so that any other one serves.
    is_default_name: bool,
    kind: Kind,
    /// Bytes that the file held before, and that stay.
    before_bytes: u64,
    sole_writer: SoleWriter,
    /// Packets not yet written, and the end of each in `batch`.
    batch: Vec<u8>,
    ends: Vec<usize>,
    written_bytes: u64,
    packets: u64,
    failed: bool,
    /// The trace is complete, perhaps empty: the file stays.
    finished: bool,
}

impl Output {
    /// Creates `path`, readable only for its owner, or opens it unchanged; `-` is standard output.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, is a terminal, or another recording writes it.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let (file, kind, name) = open(path).attempt(|| format!("cannot write {}", path.display()))?;
        if file.is_terminal() {
            let what = format!("cannot write {}", path.display());
            let hint = "name a file with -o FILE, or redirect the output: `esatto record -o - > FILE`";
            return Err(Failure::new(what, "it is a terminal, and a trace is binary").hint(hint));
        }
        let meta = file.metadata().attempt(|| format!("cannot write {}", path.display()))?;
        if kind == Kind::Existing {
            lock(&file, &name)?;
        }
        let before_bytes = if kind == Kind::Given && meta.is_file() { meta.len() } else { 0 };
        let mut output = Self::of(file, kind, name);
        output.before_bytes = before_bytes;
        Ok(output)
    }

    /// Fails if the file has content that is no trace.
    pub(crate) fn require_old_trace(&self) -> Result<(), Failure> {
        // A file that cannot be read is of unknown kind.
        let Some(old) = self.old_content() else { return Ok(()) };
        let beginning = beginning(old).attempt(|| format!("cannot read {}", self.name.display()))?;
        if beginning.is_empty() || may_be_trace(&beginning) {
            return Ok(());
        }
        Err(Failure::new(format!("cannot write {}", self.name.display()), "it has content that is no trace"))
    }

    fn old_content(&self) -> Option<File> {
        if self.kind == Kind::Existing { File::open(self.proc_path()).ok() } else { None }
    }

    /// Creates a new file of exactly this name. Returns `None` if the name is taken.
    ///
    /// # Errors
    ///
    /// The file cannot be created.
    pub(crate) fn create_new(path: &Path) -> Result<Option<Self>, Failure> {
        match create_new(path) {
            Ok(file) => Ok(Some(Self::of(file, Kind::Created, path.to_owned()))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(Failure::new(format!("cannot write {}", path.display()), error)),
        }
    }

    /// Plans a new file `PROGRAM-DATE.pftrace` in the current folder.
    pub(crate) fn with_default_name(program: &str) -> Result<Self, Failure> {
        let mut names = default_names(program);
        loop {
            // The names never end.
            let name = names.next().unwrap_or_default();
            let planned = plan(&name).attempt(|| format!("cannot write {}", name.display()));
            if let Some(file) = planned.map_err(|failure| failure.hint("choose another file with -o FILE"))? {
                let mut output = Self::of(file, Kind::Planned, name);
                output.is_default_name = true;
                return Ok(output);
            }
        }
    }

    fn of(file: File, kind: Kind, name: PathBuf) -> Self {
        Self {
            file,
            name,
            wanted_name: None,
            is_default_name: false,
            kind,
            before_bytes: 0,
            sole_writer: SoleWriter::default(),
            batch: Vec::with_capacity(BATCH_BYTES),
            ends: Vec::new(),
            written_bytes: 0,
            packets: 0,
            failed: false,
            finished: false,
        }
    }

    /// Returns the name of the file.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// Returns whether `path` stands for standard output.
    pub(crate) fn is_stdout(path: &Path) -> bool {
        ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path.as_os_str() == *name)
    }

    /// Returns the descriptor for a service that writes into it at any time from now on.
    ///
    /// If the file has content, the service gets a new file beside it. The existing one must not be
    /// emptied before the service has accepted the config. Emptying it afterwards is too late,
    /// because the service may already have written.
    pub(crate) fn lend(&mut self) -> Result<BorrowedFd<'_>, Failure> {
        self.require_reader()?;
        match nameless(&self.name).filter(|_| self.kind == Kind::Planned) {
            Some(file) => {
                lock(&file, &self.name)?;
                (self.file, self.kind) = (file, Kind::Nameless);
            }
            None => self.make_planned().attempt(|| format!("cannot write {}", self.name.display()))?,
        }
        let what = || format!("cannot write {}", self.name.display());
        let old = self.file.metadata().attempt(what)?;
        if self.kind == Kind::Existing && old.len() > 0 {
            let target = self.name.canonicalize().attempt(what)?;
            let (temporary, file) = create_beside(&target, &old).map_err(|error| {
                let hint = "remove the file, or choose another name";
                Failure::new(what(), format!("no new file can be made beside it: {error}")).hint(hint)
            })?;
            lock(&file, &self.name)?;
            self.file = file;
            self.kind = Kind::Beside { temporary, target };
        } else if self.kind == Kind::Existing {
            // It has nothing to be emptied of. From now on, its bytes are those of the service.
            self.kind = Kind::Emptied;
        }
        Ok(self.file.as_fd())
    }

    /// Moves the file that was [lent](Self::lend) to its final name, because the service has
    /// accepted the config.
    pub(crate) fn started(&mut self) -> Result<(), Failure> {
        if let Kind::Beside { temporary, target } = &self.kind {
            std::fs::rename(temporary, target).attempt(|| format!("cannot replace {}", self.name.display()))?;
            self.kind = Kind::Emptied;
        }
        Ok(())
    }

    /// Writes the collected packets. From now on the file is a trace, even if it is empty.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.require_reader()?;
        self.flush()?;
        self.make_room().attempt(|| format!("cannot write {}", self.name.display()))?;
        self.finished = true;
        self.require_in_place()?;
        self.require_sole_writer()?;
        match &self.wanted_name {
            None => Ok(()),
            Some(wanted) => {
                let what = format!("cannot write {}", wanted.display());
                let hint = format!("the trace is in {}", self.name.display());
                Err(Failure::new(what, "another program has created it during the recording").hint(hint))
            }
        }
    }

    /// Fails if the name of the file no longer leads to it.
    fn require_in_place(&self) -> Result<(), Failure> {
        let own = self.file.metadata().ok().filter(|_| self.is_own());
        let Some(own) = own.filter(|own| FileId::of(own).has_lost_name(&self.name)) else { return Ok(()) };
        let failure = lost_file(&self.name);
        let has_name = own.nlink() > 0;
        Err(if has_name { failure.hint(FileId::of(&own).place(&self.proc_path(), &self.name)) } else { failure })
    }

    /// Returns whether the file is only for this trace.
    fn is_own(&self) -> bool {
        matches!(self.kind, Kind::Created | Kind::Emptied)
    }

    /// Fails if another program has written the file.
    fn require_sole_writer(&self) -> Result<(), Failure> {
        if self.is_own() { self.sole_writer.require(&self.file, &self.name, self.written_bytes) } else { Ok(()) }
    }

    /// Ends the recording without a trace: there was nothing to write. An existing file keeps its
    /// content.
    pub(crate) fn give_up(mut self) {
        self.failed = true;
    }

    /// Gives a file that the service writes its name, as soon as it has content.
    pub(crate) fn show_content(&mut self) -> Result<(), Failure> {
        if self.kind == Kind::Nameless && self.file_bytes() > 0 {
            self.make_named().attempt(|| format!("cannot create {}", self.name.display()))?;
        }
        if self.is_own() {
            self.sole_writer.note_beginning(&self.file);
        }
        Ok(())
    }

    fn make_named(&mut self) -> io::Result<()> {
        let own = self.proc_path();
        let link = |to: &Path| linkat(CWD, &*own, CWD, to, AtFlags::SYMLINK_FOLLOW);
        while self.kind == Kind::Nameless {
            match link(&self.name) {
                Ok(()) => self.kind = Kind::Created,
                Err(Errno::EXIST) => self.choose_next_name(),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Gives way to another program, which has taken the name in the meantime.
    fn choose_next_name(&mut self) {
        let next = next_name(&self.name);
        let taken = core::mem::replace(&mut self.name, next);
        if !self.is_default_name {
            self.wanted_name.get_or_insert(taken);
        }
    }

    /// Returns a path of the file that does not depend on its name.
    fn proc_path(&self) -> String {
        proc_path(&self.file)
    }

    /// Creates the file if it is only planned.
    fn make_planned(&mut self) -> io::Result<()> {
        while self.kind == Kind::Planned {
            match create_new(&self.name) {
                Ok(file) => {
                    // No other program has opened it yet, or only for a moment.
                    let _ = lock(&file, &self.name);
                    (self.file, self.kind) = (file, Kind::Created);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.choose_next_name(),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Creates a planned file, or empties an existing one.
    fn make_room(&mut self) -> io::Result<()> {
        self.make_planned()?;
        self.make_named()?;
        if self.kind == Kind::Existing {
            self.file.set_len(0)?;
            self.kind = Kind::Emptied;
        }
        Ok(())
    }

    /// Appends a packet.
    pub(crate) fn packet(&mut self, packet: &[u8]) -> Result<(), Failure> {
        if self.failed {
            return Ok(());
        }
        push_packet(&mut self.batch, packet);
        self.ends.push(self.batch.len());
        self.packets += 1;
        if self.batch.len() >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes the collected packets, unless they wait for a reader. After a failure, cuts the file
    /// back to its last whole packet and ignores later packets, so that the failure is reported
    /// once.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        if self.failed || self.waits_for_reader() {
            return Ok(());
        }
        if let Err(failure) = self.require_sole_writer() {
            // The file is the other program's now, even if it is empty.
            (self.failed, self.finished) = (true, true);
            self.batch.clear();
            self.ends.clear();
            return Err(failure);
        }
        let mut done = 0;
        let is_of_disk = !matches!(self.kind, Kind::Stream | Kind::UnreadPipe) && !self.batch.is_empty();
        let watched = is_of_disk.then(|| slow_disk::watch(&self.name));
        let ready = if self.batch.is_empty() { Ok(()) } else { self.make_room() };
        let result = loop {
            if done == self.batch.len() || ready.is_err() {
                break ready;
            }
            match self.file.write(&self.batch[done..]) {
                Ok(0) => break Err(io::Error::from(io::ErrorKind::WriteZero)),
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => break Err(e),
            }
        };
        drop(watched);
        self.sole_writer.note_written(&self.batch[..done], self.written_bytes);
        let whole_packets = self.ends.partition_point(|end| *end <= done);
        let whole = whole_packets.checked_sub(1).map_or(0, |last| self.ends[last]);
        self.written_bytes += whole as u64;
        self.packets -= (self.ends.len() - whole_packets) as u64;
        self.batch.clear();
        self.ends.clear();
        let Err(why) = result else { return Ok(()) };
        self.failed = true;
        if done > whole && self.is_own() {
            // Best effort: readers report a torn packet.
            let _ = self.file.set_len(self.written_bytes);
        }
        let what = format!("cannot write all of {}", self.name.display());
        let kept = match self.written_bytes {
            0 => "nothing is kept".to_owned(),
            bytes => format!("the first {bytes} bytes are kept"),
        };
        Err(match why.kind() {
            io::ErrorKind::StorageFull => Failure::new(what, &why).hint(format!("{kept}: make room and record again")),
            io::ErrorKind::BrokenPipe => {
                let bytes = self.written_bytes;
                Failure::new(what, "its reader has closed it").hint(format!("the first {bytes} bytes were written"))
            }
            _ => Failure::new(what, &why).hint(kept),
        })
    }

    /// Returns the bytes of whole packets, written or collected.
    pub(crate) fn bytes(&self) -> u64 {
        self.written_bytes + self.batch.len() as u64
    }

    /// Returns the number of packets, written or collected.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the bytes of the trace that are on the disk, or in the pipe. `None` if another
    /// program has written them into a pipe.
    pub(crate) fn final_bytes(&self, by_service: bool) -> Option<u64> {
        match self.file.metadata() {
            _ if self.kind == Kind::Planned => Some(0),
            Ok(meta) if meta.is_file() => Some(self.file_bytes()),
            _ if by_service => None,
            _ => Some(self.written_bytes),
        }
    }

    /// Opens the trace for reading. Fails if it is not a file, or other content precedes it.
    pub(crate) fn reopen(&self) -> io::Result<File> {
        let is_own = !matches!(self.kind, Kind::Given | Kind::Planned | Kind::Stream);
        if !is_own || !self.file.metadata()?.is_file() {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        // A new description of the same file: the one at hand shares its offset with the service.
        File::open(self.proc_path())
    }

    /// Returns the size of the file, which the service may have written.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |meta| meta.len().saturating_sub(self.before_bytes))
    }
}

impl Drop for Output {
    /// Keeps the packets that came before a failure.
    fn drop(&mut self) {
        // An error here would not be the first one.
        let _ = self.flush();
        let _ = self.show_content();
        if self.kind != Kind::Given {
            // A service may close its descriptor of the file later.
            unlock(&self.file);
        }
        if let Kind::Beside { temporary, .. } = &self.kind {
            // Best effort: no other program uses the name of the file.
            let _ = std::fs::remove_file(temporary);
        }
        if self.kind == Kind::Created && !self.finished {
            // No trace was written.
            if self.file.metadata().is_ok_and(|own| own.len() == 0) {
                // Best effort: an empty file does no harm.
                let _ = remove(&self.name, &self.file);
            }
        }
    }
}

impl AsFd for Output {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Appends a packet as a field of a `Trace`.
pub(crate) fn push_packet(trace: &mut Vec<u8>, packet: &[u8]) {
    trace.push(PACKET_TAG);
    push_varint(trace, packet.len());
    trace.extend_from_slice(packet);
}

fn push_varint(out: &mut Vec<u8>, value: usize) {
    let mut rest = value;
    while rest >= 0x80 {
        out.push(u8::try_from(rest & 0x7f).expect("seven bits") | 0x80);
        rest >>= 7;
    }
    out.push(u8::try_from(rest).expect("below 0x80"));
}

#[cfg(test)]
mod tests;
