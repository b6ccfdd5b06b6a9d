//! Messages of this library to the program's author or user.
//!
//! A library that prints is a nuisance, and one that fails silently is worse. So each line is
//! reported once per process: to the program's own function, or to stderr.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use esatto_instances::Uncancelled;

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

/// Notes a line. Returns false if it was reported before.
fn is_new(line: &str) -> bool {
    let mut said = said();
    let is_new = said.len() < MAX_LINES && !said.iter().any(|known| known == line);
    if is_new {
        said.push(line.to_owned());
    }
    is_new
}

/// Reports a line of a forked child that ends, to stderr. A thread that was not copied may have had
/// the lock of stderr, or one that the program's function takes, so neither is used.
pub(crate) fn say_once_in_child(line: &str) {
    let _uncancelled = Uncancelled::begin();
    #[cfg(unix)]
    if is_new(line) {
        use std::os::fd::AsFd as _;
        if let Ok(stderr) = std::io::stderr().as_fd().try_clone_to_owned() {
            // If stderr is closed, the line is lost.
            let line = format!("esatto: {line}\n");
            drop(std::io::Write::write_all(&mut std::fs::File::from(stderr), line.as_bytes()));
        }
    }
    #[cfg(not(unix))]
    say_once(line.to_owned());
}

/// Reports a line, unless it was reported before.
pub(crate) fn say_once(line: String) {
    let _uncancelled = Uncancelled::begin();
    if !is_new(&line) {
        return;
    }
    match LISTENER.get() {
        Some(listener) => crate::callbacks::shielded(|| listener(&line)),
        // If stderr is closed, the line is lost.
        None => drop(std::io::Write::write_all(&mut std::io::stderr(), format!("esatto: {line}\n").as_bytes())),
    }
}
