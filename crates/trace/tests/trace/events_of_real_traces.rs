use std::collections::BTreeMap;

use esatto_trace::{AnnotationValue, CounterValue, EventType, Trace, events, packets};

use crate::common::official;

#[test]
fn names_categories_annotations_flows_and_threads_are_resolved() {
    let trace = Trace::read(&official("track-events")[..]);
    assert_eq!(trace.events.len(), 3003);
    assert!(trace.events.is_sorted_by_key(|event| event.ts_ns));
    let frame = trace.events.iter().find(|event| event.name.as_deref() == Some("frame")).expect("there are frames");
    assert_eq!(frame.event_type, EventType::SliceBegin);
    assert_eq!(frame.categories, ["rendering"]);
    assert_eq!(frame.pid, Some(10));
    assert!(matches!(frame.tid, Some(17..=19)));
    let annotations: Vec<_> = frame.annotations.iter().map(|a| (a.name.as_str(), a.value.clone())).collect();
    assert_eq!(
        annotations,
        [
            ("round", AnnotationValue::Uint(0)),
            ("offset", AnnotationValue::Int(0)),
            ("ratio", AnnotationValue::Double(0.0)),
            ("even", AnnotationValue::Bool(true)),
            ("label", AnnotationValue::String("gr\u{fc}n".to_owned())),
            ("address", AnnotationValue::Pointer(0xdead_beef)),
        ]
    );
    let thread = trace.threads.iter().find(|thread| Some(thread.tid) == frame.tid).expect("it is described");
    assert!(thread.name.as_deref().is_some_and(|name| name.starts_with("worker-")));
    let counters: Vec<_> = trace.events.iter().filter(|event| event.event_type == EventType::Counter).collect();
    assert_eq!(counters.len(), 300);
    assert!(counters.iter().all(|event| event.track_name.as_deref() == Some("queue depth")));
    assert!(counters.iter().all(|event| matches!(event.counter, Some(CounterValue::Int(0..=209)))));
}

#[test]
fn slices_are_nested_and_flows_join_draw_to_upload() {
    for name in ["track-events", "deflate", "ring-buffer-wrapped", "long-two-buffers"] {
        let trace = Trace::read(&official(name)[..]);
        let called = |slice: usize| trace.slices[slice].name.as_deref().unwrap_or("");
        for slice in &trace.slices {
            let parent = slice.parent.map(called);
            match slice.name.as_deref() {
                Some("draw") => assert_eq!(parent, Some("frame"), "{name}"),
                Some("frame" | "upload" | "done") => assert_eq!(parent, None, "{name}"),
                Some("details") => assert_eq!(parent, Some("draw"), "{name}"),
                Some("tick") => assert!(matches!(parent, Some("draw" | "details")), "{name}: {parent:?}"),
                other => panic!("{name}: {other:?}"),
            }
            assert_eq!(slice.duration_ns == Some(0), slice.instant, "{name}");
        }
        assert!(trace.flows.iter().all(|flow| (called(flow.from), called(flow.to)) == ("draw", "upload")), "{name}");
        let frames = trace.slices.iter().filter(|slice| slice.name.as_deref() == Some("frame"));
        let mut annotations = frames.map(|frame| trace.annotations(frame).len());
        assert!(annotations.all(|count| count == 6), "{name}");
    }
}

#[test]
fn each_thread_counts_its_rounds() {
    let mut rounds: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
    for event in events(&official("track-events")) {
        if let Some(AnnotationValue::Uint(round)) = event.annotations.first().map(|a| &a.value) {
            rounds.entry(event.tid.expect("frames are on threads")).or_default().push(*round);
        }
    }
    assert_eq!(rounds.len(), 3);
    assert!(rounds.values().all(|list| list.iter().copied().eq(0..100)));
}

#[test]
fn packets_come_with_their_offsets() {
    let bytes = official("track-events");
    let mut expected = 0;
    for packet in packets(&bytes) {
        let packet = packet.expect("the file is whole");
        assert_eq!((packet.place.offset, packet.place.inside), (expected, None));
        let at = usize::try_from(expected).expect("it is a small file");
        let header = if packet.bytes.len() < 128 { 2 } else { 3 };
        assert_eq!(bytes[at + header..at + header + packet.bytes.len()], packet.bytes[..]);
        expected += (header + packet.bytes.len()) as u64;
    }
    assert_eq!(expected, bytes.len() as u64);
    let deflated = official("deflate");
    assert!(packets(&deflated).all(|packet| packet.expect("the file is whole").place.inside.is_some()));
}
