//! `traced_relay` forwards programs with the system calls and the address families of
//! `traced-relay.service`, on the socket of `traced-relay.socket`. The service has those of
//! `traced.service`, with the changes that the guide prints. Both prove a shared secret.

use crate::sandbox::{allowed_calls, families};
use crate::unit::{Unit, systemd};
use esatto_tests::workload::{self, CONFIG, Expected, Workload};
use esatto_tests::{Harness, Implementation, Peer, Signal, beside_this_test, skip, wait_until};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

const WORKLOAD: Workload = Workload { threads: 2, rounds: 100, pause_us: 200 };

/// The changes of `traced.service` that the guide prints.
fn drop_in() -> Unit {
    const GUIDE: &str = include_str!("../../../docs/how-to/several-machines.md");
    let (_, rest) = GUIDE.split_once("```ini\n").expect("the guide prints them");
    Unit::parse("the guide", rest.split_once("```").expect("the block ends").0)
}

/// A command that allows only these calls and families to a program.
fn sandboxed([calls, families]: &[String; 2], program: PathBuf) -> Command {
    let mut command = Command::new("setpriv");
    command.arg("--no-new-privs").arg(beside_this_test("esatto-sandbox")).args([calls, families]).arg(program);
    command
}

#[test]
fn and_is_started_by_its_socket() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let unit = Unit::read("traced-relay.service");
        let calls = allowed_calls(&unit)?.join(",");
        // Here the service makes its unix sockets itself, with a lock, which is not for systemd's.
        let of_service = allowed_calls(&Unit::read("traced.service"))?.join(",") + ",flock";
        let of_service = [of_service, families(&drop_in())];
        let harness = Harness::new();
        let secret = harness.write("secret", "6f1d9c7a2b8e4f0356d1a9c8e7b2f4036f1d9c7a2b8e4f0356d1a9c8e7b2f403\n");
        std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).expect("the file is ours");
        let (_service, port) = harness.service_with_tcp(Implementation::Ours, |command| {
            let mut inner = sandboxed(&of_service, beside_this_test("traced"));
            inner.arg("--enable-relay-endpoint").arg("--secret-file").arg(&secret).current_dir(harness.folder());
            for (variable, value) in command.get_envs() {
                inner.env(variable, value.expect("it is set"));
            }
            *command = inner;
        });

        let socket = harness.path("relay.sock");
        let mut activate = systemd("systemd-socket-activate")?;
        activate.arg("--listen").arg(&socket);
        activate.arg(format!("--fdname={}", Unit::read("traced-relay.socket").value("FileDescriptorName")));
        // A name, so that the relay also looks it up.
        activate.args(["-E", &format!("PERFETTO_RELAY_SOCK_NAME=localhost:{port}")]);
        activate.args(["-E", "PERFETTO_MACHINE_NAME=guest1", "-E", "ESATTO_MACHINE_ID_HINT=guest1"]);
        let inside = sandboxed(&[calls, families(&unit)], beside_this_test("traced_relay"));
        activate.arg(inside.get_program()).args(inside.get_args()).arg("--secret-file").arg(&secret);
        let mut relay = harness.start("systemd-socket-activate", &mut activate);
        wait_until("systemd listens", || socket.exists().then_some(()));

        let mut recording =
            harness.record(Implementation::Ours, "trace", &format!("{CONFIG}trace_all_machines: true\n"));
        harness.wait_for_sessions(1);
        let mut command = harness.application_command(Implementation::Ours, WORKLOAD);
        let mut application = harness.start("producer", command.env("PERFETTO_PRODUCER_SOCK_NAME", &socket));
        relay.wait_for_log("The service knows this machine and its clocks");
        application.wait_ok();
        let trace = harness.stop(&mut recording);
        workload::assert_whole(&trace, &[Expected { pid: application.pid(), workload: WORKLOAD, details: true }]);

        relay.signal(Signal::TERM);
        relay.wait_ok();
        assert!(socket.exists(), "it is systemd's");
        Ok(())
    });
}
