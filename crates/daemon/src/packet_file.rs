//! Appends packets to a file that may take only some of them.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::time::Duration;

use esatto_protozero::wire::decode_varint;
use rustix::event::{PollFd, PollFlags, poll};

/// Pause before the next attempt if a descriptor claims to be writable and then takes nothing. It
/// doubles each time …
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// … up to this one.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Appends all packets. If the file takes no more, it keeps the whole packets that it has taken.
pub(crate) fn write_packets(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let (writing, waiting) = (&*file, &*file);
    let write = |rest: &[u8]| { writing }.write(rest);
    let (written, result) = write_patiently(bytes, write, || wait_writable(waiting), std::thread::sleep);
    if result.is_err() {
        cut_off(file, written - whole_packets(bytes, written));
    }
    result
}

/// Writes until everything is written or a write fails. Returns the number of written bytes.
///
/// `wait` waits until the file claims to be writable. A file of a FUSE file system can claim that
/// and take nothing. So after a failed attempt, each further one is preceded by a `pause`, and the
/// pauses become longer.
fn write_patiently(
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

/// Waits until a non-blocking descriptor is writable.
fn wait_writable(file: &File) -> io::Result<()> {
    loop {
        match poll(&mut [PollFd::new(file, PollFlags::OUT)], None) {
            Err(rustix::io::Errno::INTR) => {}
            result => return Ok(result.map(drop)?),
        }
    }
}

/// Removes bytes from the end of the file, so that it does not end within a packet.
fn cut_off(file: &mut File, bytes: usize) {
    let cut = file.stream_position().and_then(|end| {
        let end = end.saturating_sub(bytes as u64);
        file.set_len(end)
    });
    if let Err(e) = cut {
        // Pipes cannot be shortened.
        log::debug!("a trace file ends within a packet: {e}");
    }
}

/// Returns how many of the first `len` bytes of a `Trace` belong to whole packets.
fn whole_packets(trace: &[u8], len: usize) -> usize {
    let mut end = 0;
    // A length follows the tag.
    while let Some((length, size)) = trace.get(end + 1..).and_then(decode_varint) {
        let next = usize::try_from(length).ok().and_then(|length| length.checked_add(end + 1 + size));
        match next.filter(|&next| next <= len) {
            Some(next) => end = next,
            None => break,
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn a_torn_packet_is_cut_off() {
        let trace = b"\x0a\x02ab\x0a\x00\x0a\x03cde";
        let ends: Vec<usize> = (0..=trace.len()).map(|len| whole_packets(trace, len)).collect();
        assert_eq!(ends, [0, 0, 0, 0, 4, 4, 6, 6, 6, 6, 6, 11]);
        let path = std::env::temp_dir().join(format!("esatto-cut-{}", std::process::id()));
        let mut file = File::create_new(&path).unwrap();
        file.write_all(b"before").unwrap();
        file.write_all(&trace[..9]).unwrap();
        cut_off(&mut file, 9 - whole_packets(trace, 9));
        assert_eq!(std::fs::read(&path).unwrap(), b"before\x0a\x02ab\x0a\x00");
        std::fs::remove_file(path).unwrap();
    }

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

    #[test]
    fn a_full_nonblocking_pipe_is_waited_for() {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        let writer = std::thread::spawn(move || write_packets(&mut File::from(write), &vec![7; 1 << 20]));
        rustix::io::ioctl_fionbio(&read, false).unwrap();
        let mut all = Vec::new();
        File::from(read).read_to_end(&mut all).unwrap();
        assert_eq!(all, vec![7; 1 << 20]);
        writer.join().unwrap().unwrap();
    }
}
