//! The recordings of this process into files: those that begin, run and end.

use core::mem;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::own_file::OwnFile;
use crate::connection::{self, Handle};
use crate::error::Error;
use crate::os::fork::StaticMutex;
use crate::session::Session;

/// How long a recording may take to end, and how long other threads wait for it.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Threads that wait look again after this time: the end of a process can rely on no notification.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// A recording, as its guards know it.
pub(super) struct Recording {
    id: u64,
    pub(super) path: PathBuf,
}

/// A recording that runs.
pub(super) struct Running {
    pub(super) file: OwnFile,
    pub(super) session: Session,
    /// The process that has the threads.
    pub(super) pid: u32,
    /// The control thread that has the session.
    control: Option<&'static Handle>,
}

struct Entry {
    id: u64,
    /// The name that the program or the environment has given.
    wanted: PathBuf,
    pid: u32,
    /// Guards that the program has.
    guards: usize,
    state: State,
}

enum State {
    Beginning,
    Running(Running),
    Ending,
    /// The guards get the result.
    Ended(Result<(), Error>),
}

static ALL: StaticMutex<Vec<Entry>> = StaticMutex::new(Vec::new());

impl Running {
    pub(super) fn new(file: OwnFile, session: Session) -> Self {
        Self { file, session, pid: std::process::id(), control: connection::handle() }
    }

    /// Returns whether [`shutdown`](crate::shutdown) has ended the session.
    fn is_past(&self) -> bool {
        let is_same = |now: &'static Handle| self.control.is_some_and(|control| core::ptr::eq(control, now));
        !connection::handle().is_some_and(is_same)
    }
}

impl Entry {
    /// Returns the running recording, which ends now.
    fn take_running(&mut self) -> Option<Running> {
        match mem::replace(&mut self.state, State::Ending) {
            State::Running(running) => Some(running),
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Returns whether a thread of this process is ending the recording.
    fn is_ending(&self) -> bool {
        self.pid == std::process::id() && matches!(self.state, State::Ending)
    }
}

/// Begins a recording into a file, unless this process already makes one: then that one has one
/// more guard.
pub(super) fn begin(wanted: &Path, start: impl FnOnce() -> Result<Running, Error>) -> Result<Recording, Error> {
    let deadline = Instant::now() + PATIENCE;
    let id = loop {
        match claim(wanted) {
            Claim::Shared(recording) => return Ok(recording),
            Claim::New(id) => break id,
            // Its file is closed outside of the lock.
            Claim::Past(running) => drop(running),
            Claim::Wait if Instant::now() < deadline => thread::sleep(LOOK_AGAIN),
            Claim::Wait => {
                let what = format!("another thread is beginning or ending the recording into {}", wanted.display());
                return Err(Error::state(&what));
            }
        }
    };
    let started = start();
    let mut all = ALL.lock();
    let at = all.iter().position(|entry| entry.id == id);
    match (started, at) {
        (Ok(running), Some(at)) => {
            let path = running.file.path.clone();
            all[at].state = State::Running(running);
            Ok(Recording { id, path })
        }
        (Err(error), at) => {
            at.map(|at| all.swap_remove(at));
            Err(error)
        }
        (Ok(_), None) => unreachable!("only the thread that begins a recording removes it"),
    }
}

enum Claim {
    Shared(Recording),
    New(u64),
    Past(Running),
    Wait,
}

fn claim(wanted: &Path) -> Claim {
    let pid = std::process::id();
    let mut all = ALL.lock();
    let same = all.iter_mut().filter(|entry| entry.pid == pid && entry.wanted == wanted);
    for entry in same {
        match &entry.state {
            State::Beginning | State::Ending => return Claim::Wait,
            State::Running(running) if running.is_past() => {
                let past = entry.take_running().map_or(Claim::Wait, Claim::Past);
                entry.state = State::Ended(Ok(()));
                return past;
            }
            State::Running(running) => {
                entry.guards += 1;
                return Claim::Shared(Recording { id: entry.id, path: running.file.path.clone() });
            }
            State::Ended(_) => {}
        }
    }
    let id = all.iter().map(|entry| entry.id).max().unwrap_or(0) + 1;
    all.push(Entry { id, wanted: wanted.to_owned(), pid, guards: 1, state: State::Beginning });
    Claim::New(id)
}

/// Returns whether a process that this one was forked from has recorded into the file.
pub(super) fn is_of_parent(wanted: &Path) -> bool {
    let pid = std::process::id();
    ALL.lock().iter().any(|entry| entry.pid != pid && entry.wanted == wanted)
}

/// Ends a recording with its last guard. If another thread has ended it, waits for that thread and
/// returns the same result.
pub(super) fn end(recording: &Recording, stop: impl FnOnce(Running) -> Result<(), Error>) -> Result<(), Error> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let running = {
            let mut all = ALL.lock();
            let Some(at) = all.iter().position(|entry| entry.id == recording.id) else { return Ok(()) };
            let entry = &mut all[at];
            if entry.guards > 1 {
                entry.guards -= 1;
                return Ok(());
            }
            if let State::Ended(result) = &entry.state {
                let result = result.clone();
                all.swap_remove(at);
                return result;
            }
            match entry.take_running() {
                None if !entry.is_ending() => return Ok(()),
                running => running,
            }
        };
        if let Some(running) = running {
            let result = stop(running);
            let mut all = ALL.lock();
            if let Some(at) = all.iter().position(|entry| entry.id == recording.id) {
                all.swap_remove(at);
            }
            return result;
        }
        if Instant::now() >= deadline {
            return Err(Error::state(&format!("{} is not complete after {PATIENCE:?}", recording.path.display())));
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// Ends all recordings, and waits for those that other threads are ending. Only tries to take the
/// lock, because a thread that panics or exits may hold it.
pub(super) fn end_all(mut stop: impl FnMut(Running) -> Result<(), Error>) {
    loop {
        let Some((id, running)) =
            ALL.try_lock().and_then(|mut all| all.iter_mut().find_map(|entry| Some((entry.id, entry.take_running()?))))
        else {
            break;
        };
        let result = stop(running);
        if let Some(entry) = ALL.try_lock().as_mut().and_then(|all| all.iter_mut().find(|entry| entry.id == id)) {
            entry.state = State::Ended(result);
        }
    }
    let deadline = Instant::now() + PATIENCE;
    let is_any_ending = || ALL.try_lock().is_none_or(|all| all.iter().any(Entry::is_ending));
    while is_any_ending() && Instant::now() < deadline {
        thread::sleep(LOOK_AGAIN);
    }
}
