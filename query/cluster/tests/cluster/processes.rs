//! Schedulers, executors and clients.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// No run may take longer: what goes wrong must end by itself.
const LONGEST: Duration = Duration::from_secs(240);

pub(crate) fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_esatto-cluster"))
}

/// A server, which is killed in the end.
pub(crate) struct Server {
    pub(crate) child: Child,
    /// Its first line, and what it logs.
    pub(crate) first_line: String,
}

impl Server {
    /// Starts a server, and waits for its first line.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Self {
        let log = std::fs::File::create(log).expect("a file for the log");
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut first_line = String::new();
        lines.read_line(&mut first_line).expect("a line");
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Self { child, first_line }
    }

    pub(crate) fn kill(&mut self) {
        let _may_have_ended = self.child.kill();
        self.child.wait().expect("it can be waited for");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A scheduler, and executors that may read a folder.
pub(crate) struct Cluster {
    pub(crate) address: String,
    pub(crate) scheduler: Server,
    pub(crate) executors: Vec<Server>,
    pub(crate) folder: PathBuf,
}

impl Cluster {
    /// Starts a scheduler.
    pub(crate) fn without_executors(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let folder = crate::folder(&format!("{name}-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        let log = folder.join("scheduler.log");
        let scheduler = Server::start(program().args(["scheduler", "--bind", "127.0.0.1:0"]), &log);
        let address = scheduler.first_line.trim().strip_prefix("scheduler: listening on ");
        let address = address.unwrap_or_else(|| panic!("{name}: {}", scheduler.first_line)).to_owned();
        Self { address, scheduler, executors: Vec::new(), folder }
    }

    pub(crate) fn start(name: &str, traces: &Path, executors: usize) -> Self {
        let mut cluster = Self::without_executors(name);
        for _ in 0..executors {
            cluster.add_executor(traces);
        }
        cluster.wait(executors);
        cluster
    }

    /// Returns the folder for intermediate rows of an executor.
    pub(crate) fn rows(&self, executor: usize) -> PathBuf {
        self.folder.join(format!("rows-{executor}"))
    }

    pub(crate) fn add_executor(&mut self, traces: &Path) {
        let number = self.executors.len();
        let rows = self.rows(number);
        std::fs::create_dir_all(&rows).expect("a folder can be made");
        let mut command = program();
        command.args(["executor", "--port", "0", "--task-port", "0", "--threads", "1", "--memory-limit", "1G"]);
        command.args(["--scheduler", &self.address]).arg("--traces").arg(traces).arg("--work-dir").arg(rows);
        let log = self.folder.join(format!("executor-{number}.log"));
        self.executors.push(Server::start(command.current_dir(&self.folder), &log));
    }

    /// Waits until so many executors are known.
    pub(crate) fn wait(&self, executors: usize) {
        let start = Instant::now();
        while executors_of(&self.address) != Some(executors) {
            assert!(start.elapsed() < LONGEST, "no {executors} executors: {}", self.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Returns all logs.
    pub(crate) fn logs(&self) -> String {
        let files = std::fs::read_dir(&self.folder).expect("the folder is there");
        let logs = files.map(|file| file.expect("a file").path()).filter(|path| path.is_file());
        logs.map(|path| format!("{}:\n{}", path.display(), std::fs::read_to_string(&path).unwrap_or_default()))
            .collect()
    }

    /// Asks the cluster.
    pub(crate) fn ask(&self, args: &[&str]) -> Answer {
        ask(&[&["--cluster", &self.address], args].concat())
    }
}

/// Asks a scheduler for the number of its executors.
pub(crate) fn executors_of(address: &str) -> Option<usize> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let body = answer.split("\r\n\r\n").nth(1)?;
    body.split("ready: ").nth(1)?.split([' ', '/']).next()?.parse().ok()
}

/// The end of a run.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Answer {
    /// Returns its lines in an order of their own.
    pub(crate) fn sorted(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.stdout.lines().collect();
        lines.sort_unstable();
        lines
    }

    /// Returns the message of a run that must have failed.
    #[track_caller]
    pub(crate) fn error(&self) -> &str {
        assert_eq!(self.status, Some(1), "{self:?}");
        assert!(self.stdout.is_empty() && !self.stderr.contains("panicked"), "{self:?}");
        &self.stderr
    }
}

/// Starts a client.
pub(crate) fn start(args: &[&str]) -> Child {
    let mut command = program();
    command.arg("query").args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

/// Waits for the end of a client.
pub(crate) fn finish(mut child: Child) -> Answer {
    let mut stdout = child.stdout.take().expect("stdout is piped");
    let mut stderr = child.stderr.take().expect("stderr is piped");
    let text = |stream: &mut dyn std::io::Read| {
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it is UTF-8");
        text
    };
    std::thread::scope(|scope| {
        let stdout = scope.spawn(move || text(&mut stdout));
        let stderr = scope.spawn(move || text(&mut stderr));
        let start = Instant::now();
        let status = loop {
            match child.try_wait().expect("it can be waited for") {
                Some(status) => break status.code(),
                None if start.elapsed() > LONGEST => {
                    let command = std::fs::read(format!("/proc/{}/cmdline", child.id())).unwrap_or_default();
                    let command = String::from_utf8_lossy(&command).replace('\0', " ");
                    child.kill().expect("it can be killed");
                    child.wait().expect("it can be waited for");
                    panic!("the query did not end: {command}: {}", stderr.join().expect("it is read"));
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        Answer { status, stdout: stdout.join().expect("it is read"), stderr: stderr.join().expect("it is read") }
    })
}

/// Runs a client.
pub(crate) fn ask(args: &[&str]) -> Answer {
    finish(start(args))
}
