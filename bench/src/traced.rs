//! A tracing service on private sockets, and sessions with it.

use std::fs::File;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Until anything that never takes long is called hanging.
const DEADLINE: Duration = Duration::from_secs(60);

/// One data source, one category; enough memory for all that one program records.
const CONFIG: &str = r#"
buffers { size_kb: 131072 fill_policy: RING_BUFFER }
data_sources {
  config {
    name: "track_event"
    track_event_config { enabled_categories: "bench" disabled_categories: "*" }
  }
}
"#;

/// A folder with a running service.
#[derive(Debug)]
pub(crate) struct Traced {
    folder: tempfile::TempDir,
    perfetto: PathBuf,
    service: Running,
}

/// A child process that ends with its owner.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    log: PathBuf,
}

impl Traced {
    /// Starts a service: Perfetto's `traced`, or another program.
    pub(crate) fn start(traced: Option<&Path>) -> Result<Self, String> {
        let perfetto = official("perfetto")?;
        let traced = traced.map_or_else(|| official("traced"), |path| Ok(path.to_path_buf()))?;
        let folder =
            tempfile::Builder::new().prefix("bench").tempdir().map_err(|error| format!("temporary folder: {error}"))?;
        let mut command = command(&traced, folder.path());
        let service = Running::start(&mut command, folder.path().join("traced.log"))?;
        let mut this = Self { folder, perfetto, service };
        for socket in ["p.sock", "c.sock"] {
            let socket = this.folder.path().join(socket);
            this.service
                .wait(&format!("{} takes connections", socket.display()), || UnixStream::connect(&socket).is_ok())?;
        }
        Ok(this)
    }

    /// A command with this traced's sockets in its environment.
    pub(crate) fn command(&self, program: &Path) -> Command {
        command(program, self.folder.path())
    }

    /// Records while `program` runs, and returns its stdout and the trace. The program ends by
    /// itself after the end of its stdin, which also ends the session.
    pub(crate) fn record(&self, program: &mut Command) -> Result<(String, Vec<u8>), String> {
        let config = self.folder.path().join("config.txt");
        let trace = self.folder.path().join("trace.pftrace");
        std::fs::write(&config, CONFIG).map_err(|error| format!("{}: {error}", config.display()))?;
        let _ = std::fs::remove_file(&trace);
        let mut session = self.command(&self.perfetto);
        session.arg("--txt").arg("-c").arg(&config).arg("-o").arg(&trace);
        let mut session = Running::start(&mut session, self.folder.path().join("perfetto.log"))?;

        let results = run(program, || {
            session.interrupt();
            session.finish()
        })?;
        let trace = std::fs::read(&trace).map_err(|error| format!("{}: {error}", trace.display()))?;
        Ok((results, trace))
    }
}

/// Runs a measured program and returns its stdout. When it is done, before it ends, `then` is
/// called.
pub(crate) fn run(program: &mut Command, then: impl FnOnce() -> Result<(), String>) -> Result<String, String> {
    let mut child = program
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", Path::new(program.get_program()).display()))?;
    let mut stdout = child.stdout.take().expect("asked for");
    let mut results = String::new();
    // The last line ends with the number of events; stdout stays open as long as the process waits
    // for us.
    let mut buffer = [0; 65536];
    while !results.ends_with("}\n") || !results.contains("\"events\"") {
        match stdout.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => results.push_str(&String::from_utf8_lossy(&buffer[..n])),
            Err(error) => return Err(format!("results: {error}")),
        }
    }
    let then = then();
    drop(child.stdin.take());
    let status = child.wait().map_err(|error| format!("wait: {error}"))?;
    if !status.success() {
        return Err(format!("{}: {status}", Path::new(program.get_program()).display()));
    }
    then.map(|()| results)
}

impl Running {
    pub(crate) fn start(command: &mut Command, log: PathBuf) -> Result<Self, String> {
        let file = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let other = file.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(other)
            .spawn()
            .map_err(|error| format!("{}: {error}", Path::new(command.get_program()).display()))?;
        Ok(Self { child, log })
    }

    /// Waits until it is so, or the child ends.
    pub(crate) fn wait(&mut self, what: &str, mut done: impl FnMut() -> bool) -> Result<(), String> {
        let start = Instant::now();
        while !done() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("not so: {what}; {status}\n{}", self.log()));
            }
            if start.elapsed() > DEADLINE {
                return Err(format!("not so: {what}\n{}", self.log()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// As Ctrl-C does.
    fn interrupt(&self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::INT);
        }
    }

    fn finish(&mut self) -> Result<(), String> {
        let status = self.child.wait().map_err(|error| format!("wait: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("the session ended with {status}\n{}", self.log())) }
    }

    /// The process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command with the sockets of this folder in its environment.
pub(crate) fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("PERFETTO_PRODUCER_SOCK_NAME", folder.join("p.sock"));
    command.env("PERFETTO_CONSUMER_SOCK_NAME", folder.join("c.sock"));
    command
}

/// One of Perfetto's own programs, as `cargo xtask peers official` installs them.
pub(crate) fn official(program: &str) -> Result<PathBuf, String> {
    let peers = std::env::var_os("PEERS_DIR").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/perfetto-peers"),
        PathBuf::from,
    );
    let path = peers.join("bin").join(program);
    if path.exists() { Ok(path) } else { Err(format!("{} is missing: cargo xtask peers official", path.display())) }
}
