//! What the operating system calls this process and its threads.

use std::sync::OnceLock;

use esatto_schema::{ProcessDescriptorWriter, ThreadDescriptorWriter};

/// Longest thread name of Linux.
const NAME_SIZE: usize = 16;

/// The strings of the command line; empty where there is no `/proc`.
fn command_line() -> &'static [Vec<u8>] {
    static LINE: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    LINE.get_or_init(|| {
        let bytes = std::fs::read("/proc/self/cmdline").unwrap_or_default();
        let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
        bytes.split(|&b| b == 0).map(<[u8]>::to_vec).collect()
    })
}

/// The name under which this process connects: the first string of its command line.
pub(crate) fn name() -> String {
    command_line().first().map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default()
}

/// Writes the descriptor of this process, with another name than that of its program unless it is empty.
pub(crate) fn describe(name: &str, out: &mut ProcessDescriptorWriter<'_>) {
    out.pid(std::process::id() as i32);
    match command_line().first() {
        _ if !name.is_empty() => drop(out.process_name(name)),
        Some(program) => drop(out.process_name(program)),
        None => {}
    }
    for argument in command_line() {
        out.cmdline(argument);
    }
}

pub(crate) use crate::platform::tid;

/// A thread of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread {
    pub(crate) tid: u32,
    name: [u8; NAME_SIZE],
    name_len: usize,
}

impl Thread {
    /// The calling thread. Reads its name from `/proc`.
    pub(crate) fn current() -> Self {
        Self::named_by(tid(), "/proc/thread-self/comm")
    }

    /// Another thread of this process. Reads its name from `/proc`.
    pub(crate) fn of_tid(tid: u32) -> Self {
        Self::named_by(tid, &format!("/proc/self/task/{tid}/comm"))
    }

    fn named_by(tid: u32, path: &str) -> Self {
        let comm = std::fs::read(path).unwrap_or_default();
        let comm = comm.strip_suffix(b"\n").unwrap_or(&comm);
        let name_len = comm.len().min(NAME_SIZE);
        let mut name = [0; NAME_SIZE];
        name[..name_len].copy_from_slice(&comm[..name_len]);
        Self { tid, name, name_len }
    }

    /// Writes the descriptor of this thread, with another name than the system's unless it is empty.
    pub(crate) fn describe(&self, name: &str, out: &mut ThreadDescriptorWriter<'_>) {
        out.pid(std::process::id() as i32).tid(i64::from(self.tid));
        let name = if name.is_empty() { &self.name[..self.name_len] } else { name.as_bytes() };
        if !name.is_empty() {
            out.thread_name(name);
        }
    }
}
