//! Applications of both SDKs behind our relay, and one beside the service: all they emitted is in
//! the trace, and whose it is.

use crate::guest::{Found, Guest, host, loopback_address};
use esatto_tests::workload::{self, CONFIG, Expected, Workload};
use esatto_tests::{Conversation, Harness, Implementation, Peer, Skip};

const HERE: Workload = Workload { threads: 1, rounds: 100, pause_us: 200 };
const THERE: Workload = Workload { threads: 3, rounds: 300, pause_us: 200 };

fn scenario(conversation: Conversation) -> Result<(), Skip> {
    let harness = Harness::new();
    let address = loopback_address();
    let _service = host(&harness, conversation.service, &address);
    let guest = Guest::new(&harness, "guest1");
    let _relay = guest.relay(&address);

    let mut here = harness.application(conversation.producer, HERE);
    let mut there = guest.application(conversation.producer, THERE);
    let mut recording = harness.record(conversation.consumer, "trace", &format!("{CONFIG}trace_all_machines: true\n"));
    here.wait_ok();
    there.wait_ok();
    let trace = harness.stop(&mut recording);
    workload::assert_whole(
        &trace,
        &[
            Expected { pid: here.pid(), workload: HERE, details: true },
            Expected { pid: there.pid(), workload: THERE, details: true },
        ],
    );
    let found = Found::in_trace(&trace);
    assert_eq!(found.machines, [0, guest.id()]);
    assert_eq!([found.machine_of(&here), found.machine_of(&there)], [0, guest.id()]);
    Ok(())
}
esatto_tests::matrix!(scenario);

/// Without a word about machines, a config records the host alone.
fn without_a_word(implementation: Implementation) -> Result<(), Skip> {
    Peer::TraceProcessor.require()?;
    let harness = Harness::new();
    let address = loopback_address();
    let _service = host(&harness, implementation, &address);
    let guest = Guest::new(&harness, "guest1");
    let _relay = guest.relay(&address);
    let mut here = harness.application(Implementation::Ours, HERE);
    let _there = guest.application(Implementation::Ours, THERE);
    harness.wait_for_producers(2);
    let mut recording = harness.record(Implementation::Ours, "trace", CONFIG);
    here.wait_ok();
    harness.wait_for_producers(1);
    let trace = recording.stop();
    workload::assert_whole(&trace, &[Expected { pid: here.pid(), workload: HERE, details: true }]);
    assert_eq!(Found::in_trace(&trace).processes(), 1);
    Ok(())
}

mod a_config_without_machines {
    esatto_tests::for_each_service!(super::without_a_word);
}
