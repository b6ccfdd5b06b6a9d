use esatto::StateTrack;
use esatto_tests::sdk::{Recorder, Scenario, Trace};
use esatto_trace::EventType;

use super::{sequences, text};

esatto::categories! { static APP = "app"; }

// A trace processor before v57 counts an error for each state and continues. The test finds the
// states in the packets.
esatto_tests::scenario!(
    Scenario::new(record).check(check).tolerating(&["track_event_tokenizer_errors", "track_event_parser_errors"])
);

static LINK: StateTrack = StateTrack::new("link").description("of the network");
static THREAD: StateTrack = StateTrack::new("mode").in_this_thread();

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(esatto::track_events(1024));
    let dynamic = StateTrack::dynamic(format!("task {}", 3), 3).child_of(LINK.track());
    for attempt in 1..=2 {
        esatto::state!(APP, &LINK, "connecting", attempt = attempt);
        esatto::state!(APP, &LINK, dynamic: format!("up {attempt}"), |event| event.location(esatto::here!()));
        esatto::state!(APP, &LINK);
        esatto::state!(APP, &THREAD, "busy");
        esatto::state!(APP, &dynamic, "running");
    }
    recorder.note("uuid", LINK.track().uuid());
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let ours = trace.read();
    let states: Vec<_> = ours
        .events
        .iter()
        .filter(|event| event.event_type == EventType::State && event.track_name.as_deref() == Some("link"))
        .map(|event| event.name.clone().unwrap_or_default())
        .collect();
    assert_eq!(states, ["connecting", "up 1", "", "connecting", "up 2", ""]);

    let packets = trace.packets();
    let sequences = sequences(&packets);
    let [packets] = &sequences[..] else { panic!("{} sequences", sequences.len()) };
    let described: Vec<_> =
        packets.iter().filter_map(|p| p.track_descriptor()).filter(|d| d.state().is_some()).collect();
    assert_eq!(described.len(), 3, "once each");
    let link = described.iter().find(|d| text(d.static_name()) == "link").expect("is described");
    assert_eq!(link.uuid(), trace.fact("uuid").parse().ok());
    assert_eq!(text(link.description()), "of the network");
    let events: Vec<_> = packets.iter().filter_map(|packet| packet.track_event()).collect();
    assert_eq!(events.len(), 10);
    for event in events {
        assert_eq!(event.r#type().map(|t| t.0), Some(5));
        assert!(event.track_uuid().is_some() && event.category_iids().count() == 1);
    }
}
