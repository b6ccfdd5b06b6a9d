use esatto_trace::AnnotationValue;

use super::{read, record, record_with};

esatto::categories! {
    static BOTH = "both";
    static FILTERED = "filtered";
    static TICKS = "ticks";
}

#[test]
fn two_sessions_at_once_get_each_event() {
    let (first, second) = (record(&BOTH), record(&BOTH));
    esatto::instant!(BOTH, "for two");
    let first = read(first);
    esatto::instant!(BOTH, "for one");
    let second = read(second);
    let names = |trace: &esatto_trace::Trace| trace.events.iter().filter_map(|e| e.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&first), ["for two"]);
    assert_eq!(names(&second), ["for two", "for one"]);
}

#[test]
fn annotations_and_dynamic_names_can_be_filtered() {
    let session = record_with(&FILTERED, |config| {
        config.filter_debug_annotations = Some(true);
        config.filter_dynamic_event_names = Some(true);
    });
    let secret = String::from("secret");
    esatto::instant!(FILTERED, dynamic: secret, key = 1);
    esatto::instant!(FILTERED, "public", |event| event.annotate("key", 1));
    let trace = read(session);
    let names: Vec<_> = trace.events.iter().filter_map(|e| e.name.as_deref()).collect();
    assert_eq!(names, ["FILTERED", "public"]);
    assert!(trace.events.iter().all(|e| e.annotations.is_empty()));
}

#[test]
fn timestamps_may_be_absolute_or_in_other_units() {
    for (absolute, unit) in [(false, 1000), (true, 1), (true, 1000)] {
        let session = record_with(&TICKS, |config| {
            config.disable_incremental_timestamps = Some(absolute);
            config.timestamp_unit_multiplier = Some(unit);
        });
        for number in 0..100_u32 {
            esatto::instant!(TICKS, "tick", number = number);
        }
        let trace = read(session);
        let numbers: Vec<_> = trace.events.iter().map(|e| e.annotations[0].value.clone()).collect();
        assert_eq!(numbers, (0..100).map(AnnotationValue::Uint).collect::<Vec<_>>());
        let span = trace.events[99].ts_ns - trace.events[0].ts_ns;
        assert!((0..10_000_000_000).contains(&span), "{absolute} {unit}: {span} ns");
    }
}
