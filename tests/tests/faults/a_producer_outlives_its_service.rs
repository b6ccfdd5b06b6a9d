//! A service is restarted while an application lives: the application connects again and the next
//! recording gets its data.

use esatto_tests::workload::{self, CONFIG_WITHOUT_DEBUG, Expected, Trace, Workload};
use esatto_tests::{Conversation, Harness, Implementation, Skip};

mod between_two_recordings {
    use super::*;

    const WORKLOAD: Workload = Workload { threads: 2, rounds: 50, pause_us: 100 };

    fn scenario(conversation: Conversation) -> Result<(), Skip> {
        let harness = Harness::new();
        let mut service = harness.service(conversation.service);
        // It waits for a recording.
        let mut application = harness.application(conversation.producer, WORKLOAD);
        harness.wait_for_data_source("track_event");
        service.kill();
        let _service = harness.service(conversation.service);
        harness.wait_for_data_source("track_event");
        let mut recording = harness.record(conversation.consumer, "trace", CONFIG_WITHOUT_DEBUG);
        application.wait_ok();
        let trace = harness.stop(&mut recording);
        workload::assert_whole(&trace, &[Expected { pid: application.pid(), workload: WORKLOAD, details: false }]);
        Ok(())
    }
    esatto_tests::matrix!(scenario);
}

mod while_it_is_recorded {
    use super::*;

    const WORKLOAD: Workload = Workload { threads: 2, rounds: 4000, pause_us: 1000 };

    fn scenario(conversation: Conversation) -> Result<(), Skip> {
        let harness = Harness::new();
        let mut service = harness.service(conversation.service);
        let mut application = harness.application(conversation.producer, WORKLOAD);
        harness.wait_for_producers(1);
        let mut cut = harness.record(conversation.consumer, "cut", CONFIG_WITHOUT_DEBUG);
        harness.wait_for_sessions(1);
        service.kill();
        let status = cut.program.wait();
        if conversation.consumer == Implementation::Ours {
            assert!(!status.success(), "a recording whose service dies is no success:\n{}", cut.program.log());
        }
        let _service = harness.service(conversation.service);
        harness.wait_for_data_source("track_event");
        assert!(application.is_running(), "the application has emitted all before the service was back");
        let mut recording = harness.record(conversation.consumer, "trace", CONFIG_WITHOUT_DEBUG);
        application.wait_ok();
        let trace = Trace::load(&harness.stop(&mut recording));
        let rounds = trace.assert_end(&Expected { pid: application.pid(), workload: WORKLOAD, details: false });
        assert!(rounds > 10, "only {rounds} rounds in the trace");
        trace.assert_clean();
        Ok(())
    }
    esatto_tests::matrix!(scenario);
}
