//! `traced_relay` forwards programs with the system calls and the address families of
//! `traced-relay.service`, on the socket of `traced-relay.socket`.

use crate::sandbox::{allowed_calls, families};
use crate::unit::{Unit, systemd};
use esatto_tests::workload::{self, CONFIG, Expected, Workload};
use esatto_tests::{Harness, Implementation, Peer, Signal, beside_this_test, skip, wait_until};

const WORKLOAD: Workload = Workload { threads: 2, rounds: 100, pause_us: 200 };

#[test]
fn and_is_started_by_its_socket() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let unit = Unit::read("traced-relay.service");
        let calls = allowed_calls(&unit)?.join(",");
        let harness = Harness::new();
        let (_service, port) = harness.service_with_tcp(Implementation::Ours, |command| {
            command.arg("--enable-relay-endpoint");
        });

        let socket = harness.path("relay.sock");
        let mut activate = systemd("systemd-socket-activate")?;
        activate.arg("--listen").arg(&socket);
        activate.arg(format!("--fdname={}", Unit::read("traced-relay.socket").value("FileDescriptorName")));
        // A name, so that the relay also looks it up.
        activate.args(["-E", &format!("PERFETTO_RELAY_SOCK_NAME=localhost:{port}")]);
        activate.args(["-E", "PERFETTO_MACHINE_NAME=guest1", "-E", "ESATTO_MACHINE_ID_HINT=guest1"]);
        activate.args(["setpriv", "--no-new-privs"]).arg(beside_this_test("esatto-sandbox"));
        activate.args([&calls, &families(&unit)]).arg(beside_this_test("traced_relay"));
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
