//! The trace file that the command writes itself.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::failure::{Attempt as _, Failure};

/// Whole packets are collected up to this size before they are written.
const BATCH_BYTES: usize = 256 * 1024;
/// Tag of `Trace.packet`, field 1, length delimited.
const PACKET_TAG: u8 = 0x0a;

/// A trace in the making: a `Trace` message that grows packet by packet (`docs/spec/wire-protocol.md` §13).
///
/// It ends at a packet boundary at every moment, also after a failed write, so that whatever happens the file is a
/// readable trace.
#[derive(Debug)]
pub(crate) struct Output {
    file: File,
    name: PathBuf,
    /// Packets not yet written, and where in it each one ends.
    batch: Vec<u8>,
    ends: Vec<usize>,
    written_bytes: u64,
    packets: u64,
    failed: bool,
}

impl Output {
    /// Creates `path`, readable for its owner only, or opens it as it is; `-` is standard output.
    ///
    /// What is there stays until [`begin`](Self::begin), so that an attempt that comes to nothing destroys nothing.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let opened = if path.as_os_str() == "-" {
            io::stdout().as_fd().try_clone_to_owned().map(File::from)
        } else {
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
        };
        let file = opened.attempt(|| format!("cannot write {}", path.display()))?;
        Ok(Self {
            file,
            name: path.to_owned(),
            batch: Vec::with_capacity(BATCH_BYTES),
            ends: Vec::new(),
            written_bytes: 0,
            packets: 0,
            failed: false,
        })
    }

    /// Empties the file, now that there is something to record.
    pub(crate) fn begin(&mut self) {
        // Neither a pipe nor a device can be emptied, or has to be.
        let _ = self.file.set_len(0);
    }

    /// Removes the file if it is empty, after an attempt that came to nothing.
    pub(crate) fn give_up(self) {
        if self.file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == 0) && self.name.as_os_str() != "-" {
            // Best effort: an empty file misleads nobody.
            let _ = std::fs::remove_file(&self.name);
        }
    }

    /// Appends a packet.
    pub(crate) fn packet(&mut self, packet: &[u8]) -> Result<(), Failure> {
        if self.failed {
            return Ok(());
        }
        self.batch.push(PACKET_TAG);
        push_varint(&mut self.batch, packet.len());
        self.batch.extend_from_slice(packet);
        self.ends.push(self.batch.len());
        self.packets += 1;
        if self.batch.len() >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes what is collected. After a failure the file is cut back to its last whole packet, and everything
    /// that comes later is ignored: the failure is reported once.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        if self.failed {
            return Ok(());
        }
        let mut done = 0;
        let result = loop {
            if done == self.batch.len() {
                break Ok(());
            }
            match self.file.write(&self.batch[done..]) {
                Ok(0) => break Err(io::Error::from(io::ErrorKind::WriteZero)),
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => break Err(e),
            }
        };
        let whole_packets = self.ends.partition_point(|end| *end <= done);
        let whole = whole_packets.checked_sub(1).map_or(0, |last| self.ends[last]);
        self.written_bytes += whole as u64;
        self.packets -= (self.ends.len() - whole_packets) as u64;
        self.batch.clear();
        self.ends.clear();
        let Err(why) = result else { return Ok(()) };
        self.failed = true;
        if done > whole {
            // On a pipe there is nothing to cut; the reader sees the torn packet.
            let _ = self.file.set_len(self.written_bytes);
        }
        let failure = Failure::new(format!("cannot write all of {}", self.name.display()), &why);
        Err(if why.kind() == io::ErrorKind::StorageFull {
            failure.hint(format!("the first {} bytes are kept: make room and record again", self.written_bytes))
        } else {
            failure.hint(format!("the first {} bytes are kept", self.written_bytes))
        })
    }

    /// Bytes of whole packets, written or about to be.
    pub(crate) fn bytes(&self) -> u64 {
        self.written_bytes + self.batch.len() as u64
    }

    /// Packets, written or about to be.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// The size of the file, which the service may have written.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |meta| meta.len())
    }
}

impl Drop for Output {
    /// Keeps what came before whatever went wrong.
    fn drop(&mut self) {
        // A failure here was not the first one.
        let _ = self.flush();
    }
}

impl AsFd for Output {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
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
mod tests {
    use super::*;

    #[test]
    fn each_packet_gets_its_tag_and_minimal_length() {
        let dir = crate::private::Folder::create().unwrap();
        let path = dir.path().join("trace");
        let mut output = Output::create(&path).unwrap();
        output.packet(&[8, 1]).unwrap();
        output.packet(&[7; 200]).unwrap();
        assert_eq!((output.packets(), output.bytes()), (2, 4 + 203));
        output.flush().unwrap();
        let mut expected = vec![0x0a, 2, 8, 1, 0x0a, 0xc8, 0x01];
        expected.extend([7; 200]);
        assert_eq!(std::fs::read(&path).unwrap(), expected);
    }

    #[test]
    fn a_full_disk_is_said_once_and_what_was_written_is_counted() {
        let mut output = Output::create(Path::new("/dev/full")).unwrap();
        output.packet(&[8, 1]).unwrap();
        let failure = output.flush().unwrap_err().to_string();
        assert!(failure.contains("/dev/full") && failure.contains("0 bytes are kept"), "{failure}");
        output.packet(&[8, 1]).unwrap();
        output.flush().unwrap();
        assert_eq!((output.packets(), output.bytes(), output.failed), (0, 0, true));
    }
}
