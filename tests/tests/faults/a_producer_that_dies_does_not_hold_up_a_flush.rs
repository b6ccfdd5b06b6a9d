//! A producer is asked to flush and dies instead of answering: its part of the flush is done.

use esatto_tests::wire::{self, Peer, Proto};
use esatto_tests::{Harness, Implementation, Peer as Installed, Signal, skip, tp};

const CONFIG: &str = r#"
buffers { size_kb: 256 }
data_sources { config { name: "mute" } }
flush_timeout_ms: 600000
"#;

#[test]
fn and_the_recording_is_not_told_of_a_failure() {
    skip(|| {
        Installed::TraceProcessor.require()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::under_test());
        let mut mute = Peer::producer(&harness);
        assert!(mute.call("InitializeConnection", &Proto::new().bytes(3, "mute")).success);
        let (commands, frame) = mute.call_frame("GetAsyncCommand", &Proto::new());
        mute.send(&frame);
        let source = Proto::new().bytes(1, "mute").int(7, 1);
        assert!(mute.call("RegisterDataSource", &Proto::new().message(1, &source)).success);
        let mut recording = harness.record(Implementation::under_test(), "trace", CONFIG);
        harness.wait_for_sessions(1);
        recording.program.signal(Signal::INT);
        while wire::last(&mute.reply_to(commands).body, 5).is_none() {}
        // It will never answer.
        drop(mute);
        let trace = recording.finish();
        tp::assert_clean(&trace);
        let succeeded = tp::rows(&trace, "select value from stats where name = 'traced_flushes_succeeded'");
        assert_eq!(succeeded[0].int("value"), 1, "the flush is done as soon as nobody is left to wait for");
        Ok(())
    });
}
