//! A private folder in which the programs of one test meet.

use crate::program::{Program, Signal, wait_until};
use crate::workload::Workload;
use crate::{Implementation, beside_this_test, esatto_bin, peers, wire};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder with sockets, logs and traces of one test. It goes with the test, unless that fails.
#[derive(Debug)]
pub struct Harness {
    folder: PathBuf,
    programs: AtomicU32,
    /// The folder is removed with it.
    owned: bool,
    /// Implementation of the command `perfetto`.
    perfetto: Implementation,
}

impl Harness {
    /// An empty folder.
    ///
    /// # Panics
    ///
    /// It cannot be created.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it has an effect")]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // A unix socket's path has at most 106 bytes: keep it short.
        let name = format!("esatto-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        Self { folder, programs: AtomicU32::new(0), owned: true, perfetto: Implementation::Theirs }
    }

    /// An empty folder, in which the command `perfetto` is ours or theirs.
    #[must_use]
    pub fn with_perfetto(perfetto: Implementation) -> Self {
        let mut harness = Self::new();
        harness.set_perfetto(perfetto);
        harness
    }

    /// Makes the command `perfetto` ours or theirs.
    pub const fn set_perfetto(&mut self, perfetto: Implementation) {
        self.perfetto = perfetto;
    }

    /// The folder of another process's harness, which keeps it.
    ///
    /// Programs that are started in both must have different names: so are their logs.
    #[must_use]
    pub const fn join(folder: PathBuf) -> Self {
        Self { folder, programs: AtomicU32::new(0), owned: false, perfetto: Implementation::Theirs }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A file in the folder.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file.
    ///
    /// # Panics
    ///
    /// It cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// The address of the producer socket.
    #[must_use]
    pub fn producer_socket(&self) -> PathBuf {
        self.path("p.sock")
    }

    /// The address of the consumer socket.
    #[must_use]
    pub fn consumer_socket(&self) -> PathBuf {
        self.path("c.sock")
    }

    /// A command with this harness's sockets in its environment.
    #[must_use]
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env("PERFETTO_PRODUCER_SOCK_NAME", self.producer_socket());
        command.env("PERFETTO_CONSUMER_SOCK_NAME", self.consumer_socket());
        command.current_dir(&self.folder);
        command
    }

    /// The command `perfetto` with these arguments; it also makes its temporary files in the
    /// folder.
    #[must_use]
    pub fn perfetto(&self, arguments: &[&str]) -> Command {
        let mut command = match self.perfetto {
            Implementation::Ours => self.command(esatto_bin()),
            Implementation::Theirs => self.command(peers::official("perfetto")),
        };
        command.arg0("perfetto").env("TMPDIR", &self.folder).args(arguments);
        command
    }

    /// Runs the command `perfetto` to its end, and returns its exit code and its output.
    ///
    /// # Panics
    ///
    /// It cannot be started, or dies of a signal.
    pub fn run_perfetto(&self, arguments: &[&str]) -> (i32, String) {
        let mut program = self.start("perfetto", &mut self.perfetto(arguments));
        let status = program.wait();
        (status.code().unwrap_or_else(|| panic!("perfetto {arguments:?}: {status}")), program.log())
    }

    /// Starts `command`, named `name` in the output of a failing test.
    pub fn start(&self, name: &str, command: &mut Command) -> Program {
        let number = self.programs.fetch_add(1, Ordering::Relaxed);
        Program::start(name, command, self.path(format!("{number}-{name}.log")))
    }

    /// Starts a tracing service and waits until both sockets take connections.
    pub fn service(&self, implementation: Implementation) -> Program {
        self.service_with(implementation, |_| ())
    }

    /// Like [`service_with`](Self::service_with), also for producers elsewhere. Returns the port of
    /// this machine where they connect.
    ///
    /// # Panics
    ///
    /// There is no free port.
    pub fn service_with_tcp(
        &self,
        implementation: Implementation,
        change: impl FnOnce(&mut Command),
    ) -> (Program, u16) {
        // The kernel's choice cannot be asked for, so it is a port that was free a moment ago.
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port")
            .port();
        let addresses = format!("{},127.0.0.1:{port}", self.producer_socket().display());
        let set = |command: &mut Command| {
            command.env("PERFETTO_PRODUCER_SOCK_NAME", addresses);
            change(command);
        };
        (self.service_with(implementation, set), port)
    }

    /// Starts our relay to the service at this port of this machine, and waits until producers can
    /// connect at `socket`.
    pub fn relay(&self, port: u16, socket: &Path) -> Program {
        let mut command = self.command(esatto_bin());
        command.arg("relay").env("PERFETTO_RELAY_SOCK_NAME", format!("127.0.0.1:{port}"));
        let mut relay = self.start("relay", command.env("PERFETTO_PRODUCER_SOCK_NAME", socket));
        relay.wait_for_log("Started traced_relay");
        relay
    }

    /// As [`service`](Self::service), with a change to its command.
    pub fn service_with(&self, implementation: Implementation, change: impl FnOnce(&mut Command)) -> Program {
        let mut command = match implementation {
            Implementation::Ours => {
                let mut command = self.command(esatto_bin());
                command.arg("traced");
                command
            }
            Implementation::Theirs => self.command(peers::official("traced")),
        };
        change(&mut command);
        // Sockets of an earlier service would look like those of this one.
        for socket in [self.producer_socket(), self.consumer_socket()] {
            let _ = std::fs::remove_file(socket);
        }
        let mut service = self.start(&format!("traced-{implementation}"), &mut command);
        for socket in [self.producer_socket(), self.consumer_socket()] {
            wait_until(&format!("{} takes connections", socket.display()), || {
                assert!(service.is_running(), "the service ended:\n{}", service.log());
                UnixStream::connect(&socket).ok().map(drop)
            });
        }
        service
    }

    /// Starts an application. It waits until it is recorded, emits its events and ends.
    pub fn application(&self, implementation: Implementation, workload: Workload) -> Program {
        self.start(&format!("producer-{implementation}"), &mut self.application_command(implementation, workload))
    }

    /// The command of [`application`](Self::application).
    #[must_use]
    pub fn application_command(&self, implementation: Implementation, workload: Workload) -> Command {
        let mut command = match implementation {
            Implementation::Ours => self.command(peers::our_producer()),
            Implementation::Theirs => self.command(peers::official("official-producer")),
        };
        command.args([workload.threads, workload.rounds, workload.pause_us].map(|number| number.to_string()));
        command.arg("60");
        command
    }

    /// Starts the data sources of the operating system and waits until they are registered.
    pub fn probes(&self, implementation: Implementation) -> Program {
        let mut command = match implementation {
            Implementation::Ours => self.command(beside_this_test("traced_probes")),
            Implementation::Theirs => self.command(peers::official("traced_probes")),
        };
        let probes = self.start(&format!("traced_probes-{implementation}"), &mut command);
        self.wait_for_data_source("linux.process_stats");
        probes
    }

    /// Starts recording with a config in text format, into the file `name`.
    pub fn record(&self, implementation: Implementation, name: &str, config: &str) -> Recording {
        let config = self.write(&format!("{name}.cfg"), config);
        let trace = self.path(name);
        let mut command = match implementation {
            Implementation::Ours => {
                let mut command = self.command(esatto_bin());
                command.arg("record").arg("-c").arg(config);
                command
            }
            Implementation::Theirs => {
                let mut command = self.command(peers::official("perfetto"));
                command.arg("--txt").arg("-c").arg(config);
                command
            }
        };
        command.arg("-o").arg(&trace);
        Recording { program: self.start(&format!("record-{implementation}"), &mut command), trace }
    }

    /// Ends a recording when all applications have gone.
    ///
    /// A service may ask one to flush that has just died but was not missed yet: then a flush
    /// fails, rightly, and the trace says so.
    pub fn stop(&self, recording: &mut Recording) -> PathBuf {
        self.wait_for_producers(0);
        recording.stop()
    }

    /// A second recording of this harness is under way when the service says so: see
    /// [`wire::State`].
    pub fn wait_for_sessions(&self, count: usize) {
        wait_until(&format!("{count} sessions are started"), || (self.state().sessions_started == count).then_some(()));
    }

    /// Waits until a producer has registered the data source `name`.
    pub fn wait_for_data_source(&self, name: &str) {
        wait_until(&format!("data source {name} is registered"), || {
            self.state().data_sources.iter().any(|source| source == name).then_some(())
        });
    }

    /// Waits until so many producers are connected.
    pub fn wait_for_producers(&self, count: usize) {
        wait_until(&format!("{count} producers are connected"), || {
            (self.state().producers.len() == count).then_some(())
        });
    }

    /// Queries the service's state over a new connection.
    #[must_use]
    pub fn state(&self) -> wire::State {
        wire::Peer::consumer(self).state()
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        if std::thread::panicking() {
            eprintln!("what is left of the test: {}", self.folder.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// A recording under way.
#[derive(Debug)]
pub struct Recording {
    /// The program that records.
    pub program: Program,
    trace: PathBuf,
}

impl Recording {
    /// The trace file.
    #[must_use]
    pub fn trace(&self) -> &Path {
        &self.trace
    }

    /// Ends the recording as Ctrl-C does and waits for the trace.
    pub fn stop(&mut self) -> PathBuf {
        self.program.signal(Signal::INT);
        self.finish()
    }

    /// Waits for the end of the recording and the trace, which may have no events.
    pub fn finish(&mut self) -> PathBuf {
        self.program.wait_recorded();
        self.trace.clone()
    }
}
