//! Descriptors that calls carry: writing ends of pipes. The reading end shows if all others are
//! closed, and who wrote into them.

use std::io::{PipeReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use esatto_ipc::ForeignFd;
use esatto_ipc::sys::{PollFd, poll};

use super::shared::with;

/// Most descriptors of a run.
const MOST: usize = 40;

pub(super) struct Descriptor {
    reader: PipeReader,
}

/// Makes a descriptor, and returns its number; `None` if there are enough.
pub(super) fn make() -> Option<(u64, OwnedFd)> {
    with(|shared| {
        if shared.descriptors.len() >= MOST {
            return None;
        }
        let (reader, writer) = std::io::pipe().expect("the process has descriptors left");
        shared.descriptors.push(Descriptor { reader });
        Some((shared.descriptors.len() as u64 - 1, writer.into()))
    })
}

/// Checks that a descriptor that arrived is the one with this number.
pub(super) fn check(fd: ForeignFd, number: u64) {
    let mut writer = std::io::PipeWriter::from(fd.into_owned());
    writer.write_all(&[7]).expect("the reading end is open");
    let is_it = with(|shared| {
        let descriptor = &mut shared.descriptors[usize::try_from(number).expect("it is small")];
        descriptor.is_ready() && descriptor.reader.read(&mut [0]).is_ok_and(|len| len == 1)
    });
    assert!(is_it, "a descriptor arrives with its message: another one came for {number}");
}

impl Descriptor {
    fn is_ready(&self) -> bool {
        let mut fds = [PollFd::new(self.reader.as_fd(), false)];
        poll(&mut fds, Some(Duration::ZERO)).is_ok() && fds[0].is_readable()
    }
}

/// Checks that nobody has any descriptor open.
pub(super) fn check_all_closed() {
    let descriptors = with(|shared| std::mem::take(&mut shared.descriptors));
    for (number, mut descriptor) in descriptors.into_iter().enumerate() {
        let is_closed = descriptor.is_ready() && descriptor.reader.read(&mut [0; 16]).is_ok_and(|len| len == 0);
        assert!(is_closed, "no descriptor leaks: number {number} is open, or was written to twice");
    }
}
