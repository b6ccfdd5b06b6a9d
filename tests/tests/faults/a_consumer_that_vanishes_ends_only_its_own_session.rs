//! SIGKILL for one of two programs that record at the same time. The service ends its session; the
//! other trace and the next one are whole.

use esatto_tests::workload::{self, CONFIG_WITHOUT_DEBUG, Expected, Workload};
use esatto_tests::{Conversation, Harness, Skip};

const WORKLOAD: Workload = Workload { threads: 2, rounds: 400, pause_us: 1000 };
const SHORT: Workload = Workload { threads: 1, rounds: 20, pause_us: 100 };

fn scenario(conversation: Conversation) -> Result<(), Skip> {
    let harness = Harness::new();
    let _service = harness.service(conversation.service);
    let mut survivor = harness.record(conversation.consumer, "whole", CONFIG_WITHOUT_DEBUG);
    // Its instance is the first then: the application emits as soon as it has one.
    harness.wait_for_sessions(1);
    let mut victim = harness.record(conversation.consumer, "lost", CONFIG_WITHOUT_DEBUG);
    harness.wait_for_sessions(2);
    let mut application = harness.application(conversation.producer, WORKLOAD);
    // From its connection on it emits for about half a second.
    harness.wait_for_producers(1);
    victim.program.kill();
    harness.wait_for_sessions(1);
    application.wait_ok();
    let trace = harness.stop(&mut survivor);
    workload::assert_whole(&trace, &[Expected { pid: application.pid(), workload: WORKLOAD, details: false }]);

    let mut next = harness.record(conversation.consumer, "next", CONFIG_WITHOUT_DEBUG);
    let mut application = harness.application(conversation.producer, SHORT);
    application.wait_ok();
    let trace = harness.stop(&mut next);
    workload::assert_whole(&trace, &[Expected { pid: application.pid(), workload: SHORT, details: false }]);
    Ok(())
}
esatto_tests::matrix!(scenario);
