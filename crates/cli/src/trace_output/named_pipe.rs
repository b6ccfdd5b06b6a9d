//! Named pipe as the target of a trace. It cannot be opened before a program reads it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags, fcntl_setfl};
use rustix::io::Errno;

use super::Output;
use super::kind::Kind;
use crate::failure::{Attempt as _, Failure};

/// Bytes of packets that are held for a reader. Later packets stay in the buffers of the service.
const MAX_HELD_BYTES: usize = 64 << 20;

impl Output {
    /// Returns whether this is a named pipe that no program reads yet. Its packets are held.
    pub(crate) fn waits_for_reader(&self) -> bool {
        self.kind == Kind::UnreadPipe
    }

    /// Opens the named pipe if a program reads it now.
    pub(crate) fn find_reader(&mut self) -> Result<(), Failure> {
        if self.waits_for_reader() {
            let opened = open_write_end(Path::new(&self.proc_path()), OFlags::empty());
            if let Some(pipe) = opened.attempt(|| format!("cannot write {}", self.name.display()))? {
                (self.file, self.kind) = (pipe, Kind::Stream);
            }
        }
        Ok(())
    }

    /// Fails if the named pipe has no reader at the end of the recording.
    pub(crate) fn require_reader(&mut self) -> Result<(), Failure> {
        self.find_reader()?;
        if !self.waits_for_reader() {
            return Ok(());
        }
        let name = self.name.display();
        let why = "no program has opened this named pipe for reading";
        let hint = format!("start its reader before the recording ends, for instance `cat {name} > trace.pftrace`");
        Err(Failure::new(format!("cannot write {name}"), why).hint(hint))
    }

    /// Returns whether more packets can be held.
    pub(crate) fn has_room(&self) -> bool {
        !self.waits_for_reader() || self.batch.len() < MAX_HELD_BYTES
    }
}

/// Opens a named pipe, or a handle to it as long as no program reads it.
pub(super) fn open_pipe(path: &Path) -> io::Result<(File, Kind)> {
    // With O_CREAT, the kernel refuses pipes that other users have placed in a folder like /tmp.
    let opened = open_write_end(path, OFlags::CREATE)?;
    let (file, kind) = match opened {
        Some(pipe) => (pipe, Kind::Stream),
        None => (rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?.into(), Kind::UnreadPipe),
    };
    if !file.metadata()?.file_type().is_fifo() {
        return Err(io::Error::other("another program has replaced it"));
    }
    Ok((file, kind))
}

/// Opens only the write end, so that a write fails once the reader has closed the pipe. Returns
/// `None` if there is no reader.
fn open_write_end(path: &Path, more: OFlags) -> io::Result<Option<File>> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | more;
    let pipe = match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
        Err(Errno::NXIO) => return Ok(None),
        pipe => pipe?,
    };
    // Writes wait for a slow reader.
    fcntl_setfl(&pipe, OFlags::empty())?;
    Ok(Some(pipe.into()))
}
