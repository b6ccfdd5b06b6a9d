//! Two applications emit at once; every event is in the trace, in order per thread.

use esatto_tests::workload::{self, CONFIG, CONFIG_WITHOUT_DEBUG, Expected, Workload};
use esatto_tests::{Conversation, Harness, Skip};

const LARGE: Workload = Workload { threads: 3, rounds: 400, pause_us: 100 };
const SMALL: Workload = Workload { threads: 1, rounds: 30, pause_us: 1000 };

fn record(conversation: Conversation, config: &str, details: bool) {
    let harness = Harness::new();
    let _service = harness.service(conversation.service);
    let mut large = harness.application(conversation.producer, LARGE);
    let mut small = harness.application(conversation.producer, SMALL);
    let mut recording = harness.record(conversation.consumer, "trace", config);
    large.wait_ok();
    small.wait_ok();
    let trace = harness.stop(&mut recording);
    workload::assert_whole(
        &trace,
        &[
            Expected { pid: large.pid(), workload: LARGE, details },
            Expected { pid: small.pid(), workload: SMALL, details },
        ],
    );
}

mod with_all_categories {
    use super::*;

    fn scenario(conversation: Conversation) -> Result<(), Skip> {
        record(conversation, CONFIG, true);
        Ok(())
    }
    esatto_tests::matrix!(scenario);
}

mod without_category_debug {
    use super::*;

    fn scenario(conversation: Conversation) -> Result<(), Skip> {
        record(conversation, CONFIG_WITHOUT_DEBUG, false);
        Ok(())
    }
    esatto_tests::matrix!(scenario);
}
