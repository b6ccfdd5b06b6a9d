//! Starts programs of a role in a folder of their own, and reads the files that they leave.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use esatto_trace::{Summary, Trace};

use crate::{DEADLINE, ROLE, SIGHUP, SIGINT, SIGTERM, kill};

/// A folder of one test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("esatto-self-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a new folder");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Names of the files, in order.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("it is there");
        let mut names: Vec<_> =
            entries.map(|e| e.expect("readable").file_name().into_string().expect("text")).collect();
        names.sort();
        names
    }

    /// Starts this file as a program of a role, with `ESATTO_TRACE=t`, in the folder.
    pub(crate) fn start(&self, role: &str, args: &[(&str, &str)]) -> Program {
        let mut command = self.command(role, std::env::current_exe().expect("this file"));
        command.args(["--exact", "a_program", "--nocapture", "--quiet"]);
        command.envs(args.iter().copied());
        Program(command.spawn().expect("it starts"))
    }

    /// Returns a command that runs a program as a job of its own, with what a role needs.
    pub(crate) fn command(&self, role: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.0).process_group(0);
        // No service of the machine takes part.
        command.env(ROLE, role).env("ESATTO_TRACE", "t").env("PERFETTO_PRODUCER_SOCK_NAME", self.path("no-service"));
        // A shell that starts the tests in the background lets them ignore SIGINT, `nohup` SIGHUP.
        // SAFETY: the function only changes the action of signals.
        unsafe {
            command.pre_exec(|| {
                [SIGINT, SIGTERM, SIGHUP].into_iter().for_each(|number| _ = libc::signal(number, libc::SIG_DFL));
                Ok(())
            });
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Runs it to its end, which must be a good one. Returns what it has written to stderr.
    pub(crate) fn run(&self, role: &str, args: &[(&str, &str)]) -> String {
        let (status, said) = self.start(role, args).end();
        assert!(status.success(), "{status}: {said}");
        said
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) struct Program(pub(crate) Child);

impl Program {
    pub(crate) fn pid(&self) -> i32 {
        self.0.id().try_into().expect("a number of a process")
    }

    pub(crate) fn signal(&self, number: i32) {
        // SAFETY: the process exists until it is waited for.
        assert_eq!(unsafe { kill(self.pid(), number) }, 0);
    }

    /// Waits for the end. Returns it, and what the program has written to stderr.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let begin = Instant::now();
        while self.0.try_wait().expect("a child").is_none() {
            if begin.elapsed() > DEADLINE {
                let _ = self.0.kill();
                panic!("the program does not end");
            }
            thread::sleep(Duration::from_millis(5));
        }
        let mut said = String::new();
        let mut stderr = self.0.stderr.take().expect("piped");
        std::io::Read::read_to_string(&mut stderr, &mut said).expect("text");
        (self.0.wait().expect("a child"), said)
    }
}

/// Waits until a file exists.
pub(crate) fn wait_for(path: &Path) {
    let begin = Instant::now();
    while !path.exists() {
        assert!(begin.elapsed() < DEADLINE, "{} does not appear", path.display());
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the names of the events in a trace without mistakes.
pub(crate) fn names(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let trace = Trace::read(&bytes[..]);
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);
    let mut names: Vec<_> = trace.events.iter().filter_map(|event| event.name.as_deref().map(str::to_owned)).collect();
    names.sort();
    names.dedup();
    names
}

/// Returns what `esatto info` says if the end of the trace is missing.
pub(crate) fn missing_end(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).expect("a trace");
    let summary = Summary::read(&bytes[..]).to_string();
    summary.lines().find(|line| line.starts_with("End ")).map(str::to_owned)
}
