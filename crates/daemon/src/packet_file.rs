//! Appends packets to a file that may take only some of them.

use std::fs::File;
use std::io::{self, Write as _};

use esatto_trace_files::cut_torn_packet;
use rustix::event::{PollFd, PollFlags, poll};

use crate::patient_write::write_patiently;

/// Appends all packets. If the file takes no more, it keeps the whole packets that it has taken.
pub(crate) fn write_packets(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let (writing, waiting) = (&*file, &*file);
    let write = |rest: &[u8]| { writing }.write(rest);
    let (written, result) = write_patiently(bytes, write, || wait_writable(waiting), std::thread::sleep);
    if result.is_err() {
        if let Err(e) = cut_torn_packet(file, bytes, written) {
            log::debug!("a trace file ends within a packet: {e}");
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

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
