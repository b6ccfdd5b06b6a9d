//! Another machine: a relay, its programs, and the separation from the host.

use esatto_ipc::peer::machine_id;
use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Program, esatto_bin, tp};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The first part of an unused address of this machine: all of 127.0.0.0/8 is local.
pub(crate) fn loopback_address() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let (pid, n) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    format!("127.{}.{}.{n}:20001", 1 + (pid >> 8) % 200, pid % 256)
}

/// Starts a service that also listens on `address`, where relays may connect.
pub(crate) fn host(harness: &Harness, implementation: Implementation, address: &str) -> Program {
    host_inside(harness, implementation, address, &[])
}

/// As [`host`], started by `wrapper`.
pub(crate) fn host_inside(
    harness: &Harness,
    implementation: Implementation,
    address: &str,
    wrapper: &[OsString],
) -> Program {
    let addresses = format!("{},{address}", harness.producer_socket().display());
    harness.service_with(implementation, |command| {
        command.env("PERFETTO_PRODUCER_SOCK_NAME", addresses).arg("--enable-relay-endpoint");
        wrap(wrapper, command);
    })
}

/// Another machine of a harness.
pub(crate) struct Guest<'l> {
    harness: &'l Harness,
    pub(crate) name: String,
    /// The program, with its first arguments, that starts others inside of what separates this
    /// machine from the host.
    wrapper: Vec<OsString>,
}

impl<'l> Guest<'l> {
    /// A machine that differs from the host by its name and id only.
    pub(crate) fn new(harness: &'l Harness, name: &str) -> Self {
        Self::inside(harness, name, Vec::new())
    }

    /// A machine whose programs are started by `wrapper`.
    pub(crate) fn inside(harness: &'l Harness, name: &str, wrapper: Vec<OsString>) -> Self {
        Self { harness, name: name.to_owned(), wrapper }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.harness.path(format!("{}.sock", self.name))
    }

    /// The id that packets from here carry.
    pub(crate) fn id(&self) -> i64 {
        machine_id(self.name.as_bytes()).into()
    }

    /// Starts a relay to `service` and waits until that knows this machine and its clocks.
    pub(crate) fn relay(&self, service: &str) -> Program {
        let mut relay = self.harness.start(&format!("relay-{}", self.name), &mut self.relay_command(service));
        relay.wait_for_log("The service knows this machine and its clocks");
        relay
    }

    pub(crate) fn relay_command(&self, service: &str) -> Command {
        let mut command = Command::new(esatto_bin());
        command.args(["relay", "-v"]);
        command.env("PERFETTO_RELAY_SOCK_NAME", service);
        command.env("PERFETTO_MACHINE_NAME", &self.name);
        command.env("ESATTO_MACHINE_ID_HINT", &self.name);
        self.bring_here(&mut command);
        command
    }

    /// Starts an application here.
    pub(crate) fn application(&self, implementation: Implementation, workload: Workload) -> Program {
        let mut command = self.harness.application_command(implementation, workload);
        self.bring_here(&mut command);
        self.harness.start(&format!("producer-{implementation}-{}", self.name), &mut command)
    }

    /// Lets a command run inside of the wrapper, with this machine's producer socket.
    fn bring_here(&self, command: &mut Command) {
        command.env("PERFETTO_PRODUCER_SOCK_NAME", self.socket());
        wrap(&self.wrapper, command);
    }
}

/// Lets a command be started by another one.
fn wrap(wrapper: &[OsString], command: &mut Command) {
    let Some((program, first_args)) = wrapper.split_first() else { return };
    let mut outer = Command::new(program);
    outer.args(first_args).arg(command.get_program()).args(command.get_args());
    for (variable, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(variable, value),
            None => outer.env_remove(variable),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        outer.current_dir(folder);
    }
    *command = outer;
}

/// Machines in a trace, and the machine of each process, from the trace processor.
pub(crate) struct Found {
    /// The ids; the host's is 0.
    pub(crate) machines: Vec<i64>,
    machine_of: BTreeMap<i64, i64>,
}

impl Found {
    pub(crate) fn in_trace(trace: &Path) -> Self {
        // The host's machine is NULL, or 0, as the trace processor likes.
        let sql = "select raw_id, sysname from machine order by raw_id;
            select p.pid, coalesce(m.raw_id, 0) as raw_id from process p left join machine m on p.machine_id = m.id
              where p.pid != 0;";
        let [machines, processes]: [Vec<tp::Row>; 2] = tp::query(trace, sql).try_into().expect("two statements");
        assert!(machines.iter().all(|row| row.text("sysname") == "Linux"), "each tells about itself: {machines:#?}");
        Self {
            machines: machines.iter().map(|row| row.int("raw_id")).collect(),
            machine_of: processes.iter().map(|row| (row.int("pid"), row.int("raw_id"))).collect(),
        }
    }

    /// The machine of a program.
    pub(crate) fn machine_of(&self, program: &Program) -> i64 {
        self.machine_of[&program.pid().into()]
    }

    /// How many processes there are.
    pub(crate) fn processes(&self) -> usize {
        self.machine_of.len()
    }
}
