//! A cluster on this machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::measured::high_water;

/// Until executors have to be there.
const LONGEST: Duration = Duration::from_secs(60);

/// A scheduler and its executors, which are killed in the end.
pub(super) struct Cluster {
    pub(super) address: String,
    scheduler: Child,
    executors: Vec<Child>,
}

impl Cluster {
    /// Starts a scheduler, and executors of one thread each that may read a folder.
    pub(super) fn start(program: &Path, folder: &Path, executors: usize) -> Result<Self, String> {
        let mut command = Command::new(program);
        let (scheduler, line) = server(command.args(["scheduler", "--bind", "127.0.0.1:0"]))?;
        let mut cluster = Self { address: String::new(), scheduler, executors: Vec::new() };
        let address =
            line.trim().strip_prefix("scheduler: listening on ").ok_or_else(|| format!("scheduler: {line}"))?;
        cluster.address = address.to_owned();
        for number in 0..executors {
            let rows = folder.join(format!("rows-{number}"));
            std::fs::create_dir_all(&rows).map_err(|error| format!("{}: {error}", rows.display()))?;
            let mut command = Command::new(program);
            command.args(["executor", "--port", "0", "--task-port", "0", "--threads", "1", "--memory-limit", "1G"]);
            command.args(["--scheduler", address]).arg("--traces").arg(folder).arg("--work-dir").arg(rows);
            cluster.executors.push(server(&mut command)?.0);
        }
        let begin = Instant::now();
        while cluster.known() != Some(executors) {
            if begin.elapsed() > LONGEST {
                return Err("the executors do not reach the scheduler".to_owned());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(cluster)
    }

    /// Asks the scheduler for the number of its executors.
    fn known(&self) -> Option<usize> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        write!(stream, "GET /readyz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let body = answer.split("\r\n\r\n").nth(1)?;
        body.split("ready: ").nth(1)?.split([' ', '/']).next()?.parse().ok()
    }

    /// Most memory of an executor, in bytes.
    pub(super) fn peak_bytes(&self) -> f64 {
        self.executors.iter().map(|executor| high_water(executor.id())).fold(0.0, f64::max)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.executors.iter_mut().chain([&mut self.scheduler]) {
            let _may_have_ended = child.kill();
            let _status = child.wait();
        }
    }
}

/// Starts a server, and waits for its first line.
fn server(command: &mut Command) -> Result<(Child, String), String> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.map_err(|error| format!("{}: {error}", Path::new(command.get_program()).display()))?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("stdout is piped")?);
    let mut line = String::new();
    lines.read_line(&mut line).map_err(|error| format!("server: {error}"))?;
    std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    Ok((child, line))
}
