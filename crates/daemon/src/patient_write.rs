//! Writing to a file that may claim to be writable and take nothing: attempts with growing pauses.

use std::io;
use std::time::Duration;

/// Pause before the next attempt if a descriptor claims to be writable and then takes nothing. It
/// doubles each time …
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// … up to this one.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Writes until everything is written or a write fails. Returns the number of written bytes.
///
/// `wait` waits until the file claims to be writable. A file of a FUSE file system can claim that
/// and take nothing. So after a failed attempt, each further one is preceded by a `pause`, and the
/// pauses become longer.
pub(crate) fn write_patiently(
    bytes: &[u8],
    mut write: impl FnMut(&[u8]) -> io::Result<usize>,
    mut wait: impl FnMut() -> io::Result<()>,
    mut pause: impl FnMut(Duration),
) -> (usize, io::Result<()>) {
    let mut written = 0;
    let mut next_pause = None;
    while written < bytes.len() {
        let error = match write(&bytes[written..]) {
            Ok(0) => io::ErrorKind::WriteZero.into(),
            Ok(n) => {
                written += n;
                next_pause = None;
                continue;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && wait().is_ok() => {
                next_pause.into_iter().for_each(&mut pause);
                next_pause = Some(next_pause.map_or(SHORTEST_PAUSE, |last| (last * 2).min(LONGEST_PAUSE)));
                continue;
            }
            Err(e) => e,
        };
        return (written, Err(error));
    }
    (written, Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_takes_nothing_is_tried_after_growing_pauses() {
        let (mut attempts, mut waits, mut pauses) = (0, 0, Vec::new());
        // Takes one byte at every 11th attempt.
        let write = |_: &[u8]| {
            attempts += 1;
            if attempts % 11 == 0 { Ok(1) } else { Err(io::ErrorKind::WouldBlock.into()) }
        };
        let wait = || {
            waits += 1;
            Ok(())
        };
        let (written, result) = write_patiently(b"xy", write, wait, |pause| pauses.push(pause.as_millis()));
        assert_eq!((written, result.is_ok(), attempts, waits), (2, true, 22, 20));
        // The pauses start again after a byte was taken.
        let once = [1, 2, 4, 8, 16, 32, 64, 100, 100];
        assert_eq!(pauses, [once, once].concat());
    }
}
