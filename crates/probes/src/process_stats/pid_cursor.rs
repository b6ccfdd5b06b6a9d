//! [`PidCursor`]: the ids that the kernel gave to new processes and threads.

use std::os::fd::OwnedFd;

use super::number::{id, unsigned};
use crate::proc_folder::{FileBuffer, ProcFolder};

/// Notices which ids may belong to another process or thread now.
///
/// The kernel gives ids in ascending order, and begins again after the largest one. It tells the
/// last one in `/proc/loadavg`. So an id can have changed its owner since an earlier look only if
/// it is between the last id of then and the last id of now. (Two cases stay unnoticed: a program
/// that asks for a certain id, as a restored container does, and a whole round of all ids between
/// two looks.)
#[derive(Debug)]
pub(crate) struct PidCursor {
    file: Option<OwnedFd>,
    buffer: FileBuffer,
    last: Option<i32>,
}

/// One or two ranges of ids, each from the first to the last one.
pub(crate) type Ranges = [Option<(i32, i32)>; 2];

impl PidCursor {
    pub(crate) fn new(proc: &ProcFolder) -> Self {
        let mut cursor = Self { file: proc.open_path(b"loadavg"), buffer: FileBuffer::new(256), last: None };
        cursor.advance();
        cursor
    }

    /// Returns the last id that the kernel had given at the last look.
    pub(crate) fn last(&self) -> Option<i32> {
        self.last
    }

    /// Returns the ids that were given since the last call.
    pub(crate) fn advance(&mut self) -> Ranges {
        let Some(now) = self.file.as_ref().and_then(|file| parse_last_id(self.buffer.read(file)?)) else {
            return [None, None];
        };
        match self.last.replace(now) {
            None => [None, None],
            Some(before) if now >= before => [(now > before).then(|| (before + 1, now)), None],
            Some(before) => [Some((before.saturating_add(1), i32::MAX)), Some((0, now))],
        }
    }
}

/// Returns the last number of `/proc/loadavg`: `0.20 0.18 0.12 1/80 11206`.
pub(crate) fn parse_last_id(text: &[u8]) -> Option<i32> {
    let text = text.trim_ascii_end();
    let begin = memchr::memrchr(b' ', text)? + 1;
    let (_, rest) = unsigned(&text[begin..])?;
    id(&text[begin..]).filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process_stats::fake_proc::FakeProc;

    #[test]
    fn the_ids_since_the_last_look_are_reported() {
        let proc = FakeProc::new();
        let last = |id: i32| proc.file("loadavg", format!("0.20 0.18 0.12 1/80 {id}\n"));
        last(100);
        let mut cursor = PidCursor::new(&proc.open());
        assert_eq!(cursor.advance(), [None, None]);
        last(103);
        assert_eq!(cursor.advance(), [Some((101, 103)), None]);
        last(5);
        assert_eq!(cursor.advance(), [Some((104, i32::MAX)), Some((0, 5))], "the ids began again");
    }

    #[test]
    fn odd_text_reports_nothing() {
        for text in [&b""[..], b"7", b"0.1 x", b"0.1 -7", b"0.1 99999999999", b" "] {
            assert_eq!(parse_last_id(text), None, "{text:?}");
        }
        assert_eq!(PidCursor::new(&FakeProc::new().open()).advance(), [None, None]);
    }
}
