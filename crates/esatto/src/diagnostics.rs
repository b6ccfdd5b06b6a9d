//! What the library has to say and nobody asked for.
//!
//! A library that prints is a nuisance, and one that fails in silence is worse. So each line is said once in a process: to the program's own
//! function, or on stderr.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Hears what the library has to say.
pub(crate) type Listener = Box<dyn Fn(&str) + Send + Sync>;

/// Lines that are remembered; more are not said.
const MAX_LINES: usize = 64;

static LISTENER: OnceLock<Listener> = OnceLock::new();

fn said() -> MutexGuard<'static, Vec<String>> {
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    SAID.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the lines locked, while the process forks.
pub(crate) fn hold_for_fork() -> impl Sized {
    said()
}

/// The first listener of a process stays.
pub(crate) fn listen(listener: Listener) {
    let _ = LISTENER.set(listener);
}

/// Says a line, unless it was said before.
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
        // Nobody can be told that there is no stderr.
        None => drop(std::io::Write::write_all(&mut std::io::stderr(), format!("esatto: {line}\n").as_bytes())),
    }
}
