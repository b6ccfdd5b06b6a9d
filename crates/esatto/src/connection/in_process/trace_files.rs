//! Trace files of the service in this process (`write_into_file`, `docs/spec/service.md` §18).

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::Path;

use esatto_service::FileId;
use esatto_trace_files::Host;

use crate::control_thread;
use crate::os::{self, spawn};

const THREAD_NAME: &str = "esatto-file";

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

    /// Appends all packets. After an error, a file that can be shortened has none of them.
    fn append(&self, file: &mut File, packets: &[u8]) -> io::Result<()> {
        let before = file.stream_position();
        let result = file.write_all(packets);
        if let (Err(_), Ok(before)) = (&result, before) {
            // Readers must not find half a packet.
            let _ = file.set_len(before);
        }
        result
    }

    fn reader(&self, file: &File) -> io::Result<File> {
        os::reopen(file)
    }

    fn read_at(&self, file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        os::read_at(file, bytes, offset)
    }
}
