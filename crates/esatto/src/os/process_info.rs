//! Names and ids of this process and its threads.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};
use std::fs::File;
use std::io::Read;
use std::sync::{Arc, OnceLock};
#[cfg(feature = "in-process")]
use std::time::Duration;

use esatto_instances::Uncancelled;
use esatto_schema::{ProcessDescriptorWriter, ThreadDescriptorWriter};

#[cfg(feature = "in-process")]
use crate::track_uuid::start_ticks;

/// The longest thread name of Linux.
const NAME_SIZE: usize = 16;

/// Returns the strings of the command line; empty where there is no `/proc`.
fn command_line() -> &'static [Vec<u8>] {
    static LINE: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    LINE.get_or_init(|| {
        let _uncancelled = Uncancelled::begin();
        let bytes = std::fs::read("/proc/self/cmdline").unwrap_or_default();
        let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
        bytes.split(|&b| b == 0).map(<[u8]>::to_vec).collect()
    })
}

/// Reads the command line now, so that no thread waits later for another one that reads it.
pub(crate) fn ask_command_line() {
    command_line();
}

/// Returns the name under which this process connects: the first string of its command line.
pub(crate) fn name() -> String {
    command_line().first().map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default()
}

/// Returns how long ago the job of this process began, which is its process group: a command line
/// of a shell, a script, a service. The longest time if the process that began it has ended. `None`
/// if this process is the first of its job, or if `/proc` does not tell.
#[cfg(feature = "in-process")]
pub(crate) fn job_age() -> Option<Duration> {
    let first = job();
    if first == 0 || first == std::process::id() {
        return None;
    }
    let _uncancelled = Uncancelled::begin();
    let Ok(stat) = std::fs::read(format!("/proc/{first}/stat")) else { return Some(Duration::MAX) };
    // A tick of the kernel's interface is a hundredth of a second on every machine.
    let began = Duration::from_millis(start_ticks(&stat)?.saturating_mul(10));
    Duration::from_nanos(super::read_clock(super::ClockId::Boottime)).checked_sub(began)
}

/// Returns the number of the process group: that of its first process; 0 where there is none.
#[cfg(feature = "in-process")]
fn job() -> u32 {
    #[cfg(unix)]
    {
        unsafe extern "C" {
            safe fn getpgrp() -> core::ffi::c_int;
        }
        u32::try_from(getpgrp()).unwrap_or(0)
    }
    #[cfg(not(unix))]
    0
}

/// The number of this process in the traces of one service. In a container it is the one that the
/// system's own probes see, if the service has told it.
///
/// Each connection has its own number: a service changes only the packets for itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pid(
    /// 0: the number that this process knows itself.
    Arc<AtomicU32>,
);

impl Pid {
    /// Sets the number by which the service knows this process.
    pub(crate) fn set(&self, pid: u32) {
        self.0.store(pid, Ordering::Relaxed);
    }

    /// Forgets the number, because the connection is over.
    pub(crate) fn forget(&self) {
        self.set(0);
    }

    fn get(&self) -> u32 {
        match self.0.load(Ordering::Relaxed) {
            0 => std::process::id(),
            pid => pid,
        }
    }

    /// Returns the number of a thread for traces. The main thread has the number of the process, as
    /// everywhere. Other threads of a container keep the number that the container gives them,
    /// because their outer numbers are not visible inside.
    fn of_thread(&self, tid: u32) -> u32 {
        if tid == std::process::id() { self.get() } else { tid }
    }
}

/// Writes the descriptor of this process. `name` replaces the program's name unless it is empty.
pub(crate) fn describe(name: &str, pid: &Pid, out: &mut ProcessDescriptorWriter<'_>) {
    out.pid(pid.get() as i32);
    match command_line().first() {
        _ if !name.is_empty() => drop(out.process_name(name)),
        Some(program) => drop(out.process_name(program)),
        None => {}
    }
    for argument in command_line() {
        out.cmdline(argument);
    }
}

thread_local! {
    /// 0: not known, or no longer valid.
    static TID: Cell<u32> = const { Cell::new(0) };
}

/// Returns the number of the calling thread. It is cached once forks are noticed, because the
/// thread that forks has another number in the child.
#[inline]
pub(crate) fn tid() -> u32 {
    match TID.get() {
        0 => ask_tid(),
        tid => tid,
    }
}

#[cold]
fn ask_tid() -> u32 {
    let tid = super::tid();
    if super::fork::is_watched() {
        TID.set(tid);
    }
    tid
}

/// Forgets the number of this thread, in the child of a fork.
pub(crate) fn forget_tid() {
    TID.set(0);
}

/// A thread of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread {
    pub(crate) tid: u32,
    name: [u8; NAME_SIZE],
    name_len: usize,
}

impl Thread {
    /// Returns the calling thread. Reads its name from `/proc`.
    pub(crate) fn current() -> Self {
        Self::named_by(tid(), "/proc/thread-self/comm")
    }

    /// Returns another thread of this process. Reads its name from `/proc`.
    pub(crate) fn of_tid(tid: u32) -> Self {
        Self::named_by(tid, &format!("/proc/self/task/{tid}/comm"))
    }

    fn named_by(tid: u32, path: &str) -> Self {
        let _uncancelled = Uncancelled::begin();
        let mut name = [0; NAME_SIZE];
        // One read returns the name and the end of its line.
        let read = File::open(path).and_then(|mut comm| comm.read(&mut name)).unwrap_or(0);
        let name_len = name[..read].iter().position(|&byte| byte == b'\n').unwrap_or(read);
        Self { tid, name, name_len }
    }

    /// Returns the same thread if its name has changed. Three system calls, no allocation.
    pub(crate) fn renamed(&self) -> Option<Self> {
        let now = Self::named_by(self.tid, "/proc/thread-self/comm");
        (now.name[..now.name_len] != self.name[..self.name_len]).then_some(now)
    }

    /// Writes the descriptor of this thread. `name` replaces the system's name unless it is empty.
    pub(crate) fn describe(&self, name: &str, pid: &Pid, out: &mut ThreadDescriptorWriter<'_>) {
        out.pid(pid.get() as i32).tid(i64::from(pid.of_thread(self.tid)));
        let name = if name.is_empty() { &self.name[..self.name_len] } else { name.as_bytes() };
        if !name.is_empty() {
            out.thread_name(name);
        }
    }
}
