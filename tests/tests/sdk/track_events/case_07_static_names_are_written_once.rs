use esatto::StateTrack;
use esatto_tests::sdk::{Recorder, Trace};

use super::{all, names, sequences, text};

esatto::categories! { static APP = "app"; }
static STATE: StateTrack = StateTrack::new("state");

// Readers that do not know states complain of them.
const UNKNOWN: &[&str] = &["track_event_tokenizer_errors", "track_event_parser_errors"];

mod plain {
    esatto_tests::scenario!(
        esatto_tests::sdk::Scenario::new(|recorder| super::record(recorder, false))
            .check(super::check_plain)
            .tolerating(super::UNKNOWN)
    );
}

mod filtered {
    esatto_tests::scenario!(
        esatto_tests::sdk::Scenario::new(|recorder| super::record(recorder, true))
            .check(super::check_filtered)
            .tolerating(super::UNKNOWN)
    );
}

fn record(recorder: &Recorder, filter: bool) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(all(|events| events.filter_dynamic_event_names = Some(filter)));
    for round in 0..3 {
        esatto::instant!(APP, "same");
        esatto::instant!(APP, "same");
        esatto::instant!(APP, dynamic: format!("round {round}"));
        esatto::begin!(APP, dynamic: String::from("made"));
        esatto::end!(APP);
        esatto::state!(APP, &STATE, "known");
        esatto::state!(APP, &STATE, dynamic: format!("secret {round}"));
    }
    recorder.finish(session);
}

fn check_plain(trace: &Trace) {
    let [slices] = trace.query(["select distinct name from slice order by name"]);
    let names: Vec<_> = slices.iter().map(|row| row.text("name")).collect();
    assert_eq!(names, ["made", "round 0", "round 1", "round 2", "same"]);

    let packets = trace.packets();
    let sequences = sequences(&packets);
    let [packets] = &sequences[..] else { panic!("{} sequences", sequences.len()) };
    let defined: Vec<_> = packets
        .iter()
        .filter_map(|p| p.interned_data())
        .flat_map(|d| d.event_names())
        .map(|n| text(n.name()))
        .collect();
    assert_eq!(defined, ["same", "known"]);
    for event in packets.iter().filter_map(|packet| packet.track_event()) {
        assert!(event.name_iid().is_none() || event.name().is_none(), "one or the other");
    }
    let inline = packets.iter().filter_map(|p| p.track_event()).filter_map(|e| e.name()).count();
    assert_eq!(inline, 9);
}

fn check_filtered(trace: &Trace) {
    let [slices] = trace.query(["select distinct name from slice order by name"]);
    assert_eq!(slices.iter().map(|row| row.text("name")).collect::<Vec<_>>(), ["FILTERED", "same"]);
    let mut names = names(trace);
    names.sort();
    names.dedup();
    assert_eq!(names, ["FILTERED", "known", "same"], "of states, too");
}
