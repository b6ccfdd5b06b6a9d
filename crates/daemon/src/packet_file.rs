//! Appending packets to a file that may take only some of them.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};

use esatto_protozero::wire::decode_varint;
use rustix::event::{PollFd, PollFlags, poll};

/// Appends whole packets: all of them, or, if the file takes no more, as many as it takes.
pub(crate) fn write_packets(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let mut written = 0;
    while written < bytes.len() {
        let error = match file.write(&bytes[written..]) {
            Ok(0) => io::ErrorKind::WriteZero.into(),
            Ok(n) => {
                written += n;
                continue;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && wait_writable(file).is_ok() => continue,
            Err(e) => e,
        };
        cut_off(file, written - whole_packets(bytes, written));
        return Err(error);
    }
    Ok(())
}

/// Waits for a descriptor that its owner made non-blocking.
fn wait_writable(file: &File) -> io::Result<()> {
    loop {
        match poll(&mut [PollFd::new(file, PollFlags::OUT)], None) {
            Err(rustix::io::Errno::INTR) => {}
            result => return Ok(result.map(drop)?),
        }
    }
}

/// Removes so many bytes from the end, so that readers do not find half a packet there.
fn cut_off(file: &mut File, bytes: usize) {
    let cut = file.stream_position().and_then(|end| {
        let end = end.saturating_sub(bytes as u64);
        file.set_len(end)
    });
    if let Err(e) = cut {
        // Pipes have no end.
        log::debug!("a trace file ends within a packet: {e}");
    }
}

/// How many of the first `len` bytes of a `Trace` are whole packets.
fn whole_packets(trace: &[u8], len: usize) -> usize {
    let mut end = 0;
    // Behind the tag, a length.
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
    fn what_does_not_fit_is_cut_off_behind_a_packet() {
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
    fn a_pipe_that_does_not_block_is_waited_for() {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        let writer = std::thread::spawn(move || write_packets(&mut File::from(write), &vec![7; 1 << 20]));
        rustix::io::ioctl_fionbio(&read, false).unwrap();
        let mut all = Vec::new();
        File::from(read).read_to_end(&mut all).unwrap();
        assert_eq!(all, vec![7; 1 << 20]);
        writer.join().unwrap().unwrap();
    }
}
