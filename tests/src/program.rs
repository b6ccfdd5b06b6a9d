//! Child processes that do not outlive their test, and waiting without guessing.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub use rustix::process::Signal;

/// How long anything may take before a test gives up. No test depends on it: it only keeps a
/// hanging one from hanging for ever.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// A running program. It is killed when dropped; its output is shown if the test fails.
#[derive(Debug)]
pub struct Program {
    name: String,
    child: Child,
    log: PathBuf,
    ended: Option<ExitStatus>,
}

impl Program {
    /// Starts `command` with stdout and stderr in the file `log`.
    ///
    /// # Panics
    ///
    /// It cannot be started.
    pub fn start(name: &str, command: &mut Command, log: PathBuf) -> Self {
        let file = File::create(&log).expect("the log file can be created");
        let both = file.try_clone().expect("the log file has two ends");
        command.stdin(Stdio::null()).stdout(file).stderr(both);
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        Self { name: name.to_owned(), child, log, ended: None }
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Output so far.
    #[must_use]
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Sends a signal; a program that has ended does not mind. After [`Signal::STOP`] all of its
    /// threads stand still.
    pub fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            let pid = rustix::process::Pid::from_child(&self.child);
            let _ = rustix::process::kill_process(pid, signal);
            if signal == Signal::STOP {
                // On a busy machine the first thread that handles it may have to wait for a CPU.
                wait_until(&format!("{} stands still", self.name), || self.stands_still().then_some(()));
            }
        }
    }

    /// Returns whether no thread of the program runs any more.
    fn stands_still(&self) -> bool {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", self.pid())) else { return true };
        threads.flatten().all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // The state follows the name, which may have any characters. A thread may have ended.
            let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
            state.is_none_or(|state| "TtZX".contains(state))
        })
    }

    /// Kills it with SIGKILL and waits until it is gone.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.wait();
    }

    /// True while the program runs.
    pub fn is_running(&mut self) -> bool {
        self.poll().is_none()
    }

    /// Waits for the end.
    ///
    /// # Panics
    ///
    /// It does not end within [`DEADLINE`].
    pub fn wait(&mut self) -> ExitStatus {
        let name = self.name.clone();
        wait_until(&format!("{name} has ended"), || self.poll())
    }

    /// Waits for the end, which must be a good one.
    ///
    /// # Panics
    ///
    /// Its status is not 0.
    pub fn wait_ok(&mut self) {
        let status = self.wait();
        assert!(status.success(), "{}: {status}\n{}", self.name, self.log());
    }

    /// Waits for the end of `esatto record`, which may have recorded no event.
    ///
    /// # Panics
    ///
    /// It has failed.
    pub fn wait_recorded(&mut self) {
        let status = self.wait();
        assert!(matches!(status.code(), Some(0 | 3)), "{}: {status}\n{}", self.name, self.log());
    }

    /// Waits until it has printed `text`.
    ///
    /// # Panics
    ///
    /// It ends before, or does not within [`DEADLINE`].
    pub fn wait_for_log(&mut self, text: &str) {
        let name = self.name.clone();
        wait_until(&format!("{name} has printed '{text}'"), || {
            if self.log().contains(text) {
                return Some(());
            }
            assert!(self.is_running(), "{name} ended without printing '{text}':\n{}", self.log());
            None
        });
    }

    /// How many descriptors it has open.
    ///
    /// # Panics
    ///
    /// It has ended.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("it runs").count()
    }

    /// How much memory it has in use, in KiB (VmRSS).
    ///
    /// # Panics
    ///
    /// It has ended.
    #[must_use]
    pub fn memory_kb(&self) -> u64 {
        self.status_kb("VmRSS:")
    }

    /// How much of it is its own, in KiB (RssAnon): without files and memory that it shares.
    ///
    /// # Panics
    ///
    /// It has ended.
    #[must_use]
    pub fn own_memory_kb(&self) -> u64 {
        self.status_kb("RssAnon:")
    }

    fn status_kb(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("it has memory");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// Waits until it has no more than `count` descriptors open.
    ///
    /// # Panics
    ///
    /// It keeps them longer than [`DEADLINE`].
    pub fn wait_for_descriptors(&mut self, count: usize) {
        let what = format!("{} has at most {count} descriptors open", self.name);
        wait_until(&what, || (self.descriptors() <= count).then_some(()));
    }

    fn poll(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("the child is ours");
        }
        self.ended
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.poll().is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            eprintln!("---- {} ({:?})\n{}----", self.name, self.ended, self.log());
        }
    }
}

/// Asks `check` until it has an answer.
///
/// # Panics
///
/// There is none within [`DEADLINE`].
pub fn wait_until<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = check() {
            return answer;
        }
        assert!(start.elapsed() < DEADLINE, "waited {DEADLINE:?} in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
