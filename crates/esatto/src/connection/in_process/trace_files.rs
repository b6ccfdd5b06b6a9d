//! Trace files of the service in this process (`write_into_file`, `docs/spec/service.md` §18).

use std::fs::{File, Metadata};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use esatto_service::FileId;
use esatto_trace_files::{Host, cut_torn_packet};

use crate::control_thread;
use crate::os::{self, spawn};

const THREAD_NAME: &str = "esatto-file";

/// At the end, files that accept nothing for this long are given up.
const PATIENCE_AT_END: Duration = Duration::from_secs(5);

/// Waits until all files are complete, or accept nothing for too long. `look` returns true if one
/// of them has accepted data since the last call, and `None` if all are complete.
pub(super) fn complete(mut look: impl FnMut() -> Option<bool>) {
    let mut last_accepted = Instant::now();
    while let Some(has_accepted) = look().filter(|_| last_accepted.elapsed() < PATIENCE_AT_END) {
        if has_accepted {
            last_accepted = Instant::now();
        } else {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The SDK's way to write files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sdk;

impl Host for Sdk {
    fn spawn(&self, _: FileId, body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        spawn(THREAD_NAME, body).map(drop)
    }

    fn wake(&self) {
        control_thread::wake();
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        File::options().read(true).write(true).create_new(true).open(path)
    }

    fn require_sole_writer(&self, file: &File, begin: u64, beginning: &[u8], size_bytes: u64) -> io::Result<()> {
        let Some(meta) = file.metadata().ok().filter(Metadata::is_file) else { return Ok(()) };
        let mut bytes = vec![0; beginning.len()];
        // If the file cannot be read, only its size tells.
        let read = if os::READS_BESIDE_WRITES { os::read_at(file, &mut bytes, begin).ok() } else { None };
        let begins = read.is_none_or(|read| bytes[..read] == *beginning);
        if begins && meta.len() >= begin + size_bytes {
            return Ok(());
        }
        Err(io::Error::other("another program has emptied it, or has written into it"))
    }

    fn append(&self, file: &mut File, packets: &[u8]) -> io::Result<()> {
        let mut taken = 0;
        while taken < packets.len() {
            let error = match file.write(&packets[taken..]) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(len) => {
                    taken += len;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            // Best effort: pipes cannot be shortened.
            let _ = cut_torn_packet(file, packets, taken);
            return Err(error);
        }
        Ok(())
    }

    fn reader(&self, file: &File) -> io::Result<File> {
        os::reader(file)
    }

    fn read_at(&self, file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        os::read_at(file, bytes, offset)
    }
}
