//! Appends packets to a file that may take only some of them.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};

use esatto_protozero::wire::decode_varint;
use rustix::event::{PollFd, PollFlags, poll};

use crate::patient_write::write_patiently;

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
