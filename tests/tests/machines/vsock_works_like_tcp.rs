//! The sockets of virtual machines, where the kernel has a loopback for them.

use crate::guest::{Found, Guest, host};
use esatto_ipc::{Address, Listener, Stream};
use esatto_tests::workload::{self, CONFIG, Expected, Workload};
use esatto_tests::{Harness, Implementation, Peer, Skip, skip};
use std::time::Duration;

const WORKLOAD: Workload = Workload { threads: 2, rounds: 100, pause_us: 200 };

/// The context id of this machine, to itself.
const LOCAL: u32 = 1;

#[test]
fn through_a_relay() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let port = 20_000 + std::process::id() % 40_000;
        loopback(port)?;
        let harness = Harness::new();
        let address = format!("vsock://{LOCAL}:{port}");
        let _service = host(&harness, Implementation::Ours, &address);
        let guest = Guest::new(&harness, "guest1");
        let _relay = guest.relay(&address);
        let mut program = guest.application(Implementation::Ours, WORKLOAD);
        let mut recording =
            harness.record(Implementation::Ours, "trace", &format!("{CONFIG}trace_all_machines: true\n"));
        program.wait_ok();
        let trace = harness.stop(&mut recording);
        workload::assert_whole(&trace, &[Expected { pid: program.pid(), workload: WORKLOAD, details: true }]);
        assert_eq!(Found::in_trace(&trace).machine_of(&program), guest.id());
        Ok(())
    });
}

/// Tests if this machine can connect to itself.
fn loopback(port: u32) -> Result<(), Skip> {
    let no = |e: esatto_ipc::Error| Skip(format!("no vsock loopback: {e}"));
    let address = Address::Vsock { cid: LOCAL, port };
    let _listener = Listener::bind(&address).map_err(no)?;
    Stream::connect(&address, Duration::from_secs(2)).map_err(no)?;
    Ok(())
}
