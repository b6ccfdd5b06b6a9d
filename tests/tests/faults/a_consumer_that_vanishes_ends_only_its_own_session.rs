//! SIGKILL for one of two programs that record at the same time: the service ends its session, the
//! other trace is whole, and the next one too.

use esatto_tests::workload::{self, CONFIG_WITHOUT_DEBUG, Expected, Workload};
use esatto_tests::{Lab, Skip, Trio};

const WORKLOAD: Workload = Workload { threads: 2, rounds: 400, pause_us: 1000 };
const SHORT: Workload = Workload { threads: 1, rounds: 20, pause_us: 100 };

fn scenario(trio: Trio) -> Result<(), Skip> {
    let lab = Lab::new();
    let _service = lab.service(trio.service);
    let mut survivor = lab.record(trio.consumer, "whole", CONFIG_WITHOUT_DEBUG);
    // Its instance is the first then: the application emits as soon as it has one.
    lab.wait_for_sessions(1);
    let mut victim = lab.record(trio.consumer, "lost", CONFIG_WITHOUT_DEBUG);
    lab.wait_for_sessions(2);
    let mut application = lab.application(trio.producer, WORKLOAD);
    // From its connection on it emits for about half a second.
    lab.wait_for_producers(1);
    victim.program.kill();
    lab.wait_for_sessions(1);
    application.wait_ok();
    let trace = lab.stop(&mut survivor);
    workload::assert_whole(&trace, &[Expected { pid: application.pid(), workload: WORKLOAD, details: false }]);

    let mut next = lab.record(trio.consumer, "next", CONFIG_WITHOUT_DEBUG);
    let mut application = lab.application(trio.producer, SHORT);
    application.wait_ok();
    let trace = lab.stop(&mut next);
    workload::assert_whole(&trace, &[Expected { pid: application.pid(), workload: SHORT, details: false }]);
    Ok(())
}
esatto_tests::matrix!(scenario);
