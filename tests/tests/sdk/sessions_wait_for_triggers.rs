//! Triggers of the program itself: `Tracing::activate_triggers`.

use std::time::Duration;

use esatto::schema::TraceConfig;
use esatto::schema::trace_config::{TriggerConfig, trigger_config};
use esatto_tests::sdk::{Recorder, Trace};
use esatto_tests::wait_until;

esatto::categories! {
    static APP = "app";
}

esatto_tests::scenario!(record, check);

fn record(recorder: &Recorder) {
    let tracing = recorder.connect(CATEGORIES);
    let trigger =
        trigger_config::Trigger { name: Some("it happened".into()), stop_delay_ms: Some(1), ..Default::default() };
    let config = TraceConfig {
        trigger_config: Some(TriggerConfig {
            trigger_mode: Some(trigger_config::TriggerMode::STOP_TRACING),
            trigger_timeout_ms: Some(600_000),
            triggers: vec![trigger],
            ..Default::default()
        }),
        ..esatto::track_events(1024)
    };
    let session = recorder.start(config);
    esatto::instant!(APP, "before");
    tracing.activate_triggers(&["something else"], Duration::ZERO);
    tracing.activate_triggers(&["it happened"], Duration::from_secs(10));
    wait_until("the trigger ends the recording", || (!APP.is_enabled()).then_some(()));
    esatto::instant!(APP, "after");
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let [slices] = trace.query(["select name from slice where category = 'app'"]);
    assert_eq!(slices.iter().map(|row| row.text("name")).collect::<Vec<_>>(), ["before"]);
}
