//! The parent of the three processes: it records them through a service of its own.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use esatto::{Backend, Session, SessionConfig};
use esatto_daemon::{Daemon, Options};
use esatto_ipc::address::{Address, PRODUCER_SOCK_NAME};

/// Runs the processes and writes their trace.
pub(crate) fn record(output: &Path) -> Result<(), Box<dyn Error>> {
    let folder = Folder::new()?;
    let (producer, consumer) = (folder.0.join("producer"), folder.0.join("consumer"));
    let options = Options::new(Address::Path(producer.clone()), Address::Path(consumer.clone()));
    let _service = Daemon::bind(options).and_then(Daemon::spawn_thread)?;
    let backend = Backend::Socket(consumer.display().to_string());
    let categories = ["app", "disk", "index", "store", "rpc"];
    let session = Session::start(backend, SessionConfig::new().categories(categories))?;

    let start = |role: &str| Process::start(role, &folder.0, &producer);
    let store = start("store")?;
    let index = start("index")?;
    start("front")?.wait()?;
    index.wait()?;
    store.wait()?;
    fs::write(output, session.stop()?)?;
    println!("wrote {}: open it in https://ui.perfetto.dev", output.display());
    Ok(())
}

/// A process of this program in another role. It ends when its input does.
struct Process(Child);

impl Process {
    /// Starts a process and waits until it is ready.
    fn start(role: &str, folder: &Path, producer: &Path) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        // The name of the process in the trace.
        command.arg0(role);
        command.args([role, &folder.display().to_string()]).env(PRODUCER_SOCK_NAME, producer);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let process = Self(child);
        if line != "ready\n" {
            return Err(format!("the process {role:?} did not start").into());
        }
        Ok(process)
    }

    /// Lets the process end.
    fn wait(mut self) -> Result<(), Box<dyn Error>> {
        drop(self.0.stdin.take());
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
        use std::os::unix::fs::DirBuilderExt as _;
        // Short, because the path of a socket may have at most 106 bytes.
        let path = PathBuf::from(format!("/tmp/traced-calls-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
