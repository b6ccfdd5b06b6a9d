//! Messages of this library to the program's author or user.
//!
//! A library that prints is a nuisance, and one that fails silently is worse. So each line is
//! reported once per process: to the program's own function, or to stderr.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// A function of the program that receives the messages.
pub(crate) type Listener = Box<dyn Fn(&str) + Send + Sync>;

/// Lines that are remembered; further lines are not reported.
const MAX_LINES: usize = 64;

static LISTENER: OnceLock<Listener> = OnceLock::new();

fn said() -> MutexGuard<'static, Vec<String>> {
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    SAID.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the remembered lines while the process forks.
pub(crate) fn hold_for_fork() -> impl Sized {
    said()
}

/// Sets the function that receives the messages. The first one of a process stays.
pub(crate) fn listen(listener: Listener) {
    let _ = LISTENER.set(listener);
}

/// Reports a line, unless it was reported before.
pub(crate) fn say_once(line: String) {
    {
        let mut said = said();
        if said.len() >= MAX_LINES || said.contains(&line) {
            return;
        }
        said.push(line.clone());
    }
    match LISTENER.get() {
        Some(listener) => crate::callbacks::shielded(|| listener(&line)),
        // If stderr is closed, the line is lost.
        None => drop(std::io::Write::write_all(&mut std::io::stderr(), format!("esatto: {line}\n").as_bytes())),
    }
}
