//! Byte that tells other processes whether all data sources have started (`docs/spec/cli.md` §10).

use std::fs::File;
use std::io::Write as _;

use super::log_line::log_line;

/// Processes that wait for the start. They are told once.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Vec<File>);

impl Readiness {
    /// Adds the read end of a pipe or a socket.
    pub(crate) fn add(&mut self, file: File) {
        self.0.push(file);
    }

    /// Returns whether a process waits.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.0.is_empty()
    }

    /// Tells the processes, and closes the descriptors.
    pub(crate) fn tell(&mut self, is_success: bool) {
        for mut file in self.0.drain(..) {
            if let Err(error) = file.write_all(&[u8::from(!is_success)]) {
                log_line!("Could not tell that the data sources have started: {error}");
            }
        }
    }
}
