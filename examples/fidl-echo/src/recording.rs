//! The parent of both processes: it records them through a service of its own.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use esatto::{Backend, Session, SessionConfig};
use esatto_daemon::{Daemon, Options};
use esatto_ipc::address::{Address, PRODUCER_SOCK_NAME};

use crate::Outcome;

/// Runs both processes and writes their trace.
pub(crate) fn record(output: &Path) -> Outcome {
    let folder = Folder::new()?;
    let (producer, consumer) = (folder.0.join("producer"), folder.0.join("consumer"));
    let options = Options::new(Address::Path(producer.clone()), Address::Path(consumer.clone()));
    let _service = Daemon::bind(options).and_then(Daemon::spawn_thread)?;
    let backend = Backend::Socket(consumer.display().to_string());
    let session = Session::start(backend, SessionConfig::new().categories(["app", "echo"]))?;

    let socket = folder.0.join("echo");
    let mut server = start("server", &socket, &producer)?;
    let mut ready = String::new();
    if let Some(output) = server.0.stdout.take() {
        BufReader::new(output).read_line(&mut ready)?;
    }
    if ready != "ready\n" {
        return Err("the server did not start".into());
    }
    start("client", &socket, &producer)?.wait()?;
    server.wait()?;
    fs::write(output, session.stop()?)?;
    println!("wrote {}: open it in https://ui.perfetto.dev", output.display());
    Ok(())
}

/// A process of this program in another role. It is killed when this is dropped.
struct Process(Child);

fn start(role: &str, socket: &Path, producer: &Path) -> std::io::Result<Process> {
    let mut command = Command::new(std::env::current_exe()?);
    // The name of the process in the trace.
    command.arg0(role).arg(role).arg(socket).env(PRODUCER_SOCK_NAME, producer).stdout(Stdio::piped());
    command.spawn().map(Process)
}

impl Process {
    fn wait(mut self) -> Outcome {
        let status = self.0.wait()?;
        if status.success() { Ok(()) } else { Err(format!("a process failed: {status}").into()) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A new folder that only this user may enter. When dropped, it is removed.
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Self> {
        // Short, because the path of a socket may have at most 106 bytes.
        let path = PathBuf::from(format!("/tmp/fidl-echo-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
