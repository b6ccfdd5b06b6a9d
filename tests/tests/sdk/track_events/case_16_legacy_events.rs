use esatto::schema::track_event::legacy_event::{FlowDirection, InstantEventScope};
use esatto_tests::sdk::{Recorder, Trace};

esatto::categories! { static APP = "app"; }
esatto_tests::scenario!(record, check);

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(esatto::track_events(1024));
    esatto::legacy!(APP, "begun", |event| event.legacy('B'));
    esatto::legacy!(APP, "begun", |event| event.legacy('E'));
    esatto::legacy!(APP, "complete", key = 5, |event| event.legacy('X').duration_us(7));
    esatto::legacy!(APP, "instant", |event| event.legacy('I').instant_event_scope(InstantEventScope::SCOPE_PROCESS));
    for id in [1, 2] {
        esatto::legacy!(APP, "async", |event| event.legacy('b').local_id(id));
    }
    for id in [1, 2] {
        esatto::legacy!(APP, "async", |event| event.legacy('e').local_id(id));
    }
    esatto::legacy!(APP, "scoped", |event| event.legacy('S').unscoped_id(1).id_scope("scope"));
    esatto::legacy!(APP, "scoped", |event| event.legacy('F').unscoped_id(1).id_scope("scope"));
    esatto::begin!(APP, "from", |event| event
        .fields()
        .legacy_event()
        .bind_id(77)
        .flow_direction(FlowDirection::FLOW_OUT));
    esatto::end!(APP);
    esatto::begin!(APP, "to", |event| event.fields().legacy_event().bind_id(77).flow_direction(FlowDirection::FLOW_IN));
    esatto::end!(APP);
    esatto::legacy!(APP, track: &esatto::Track::global(0), "elsewhere", |event| event
        .legacy('X')
        .duration_us(1)
        .pid_override(4711)
        .tid_override(4712));
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let [slices, tracks, arrows] = trace.query([
        "select slice.name as name, dur, tid, process_track.upid as upid from slice left join thread_track on slice.track_id = thread_track.id
            left join thread using (utid) left join process_track on slice.track_id = process_track.id",
        "select count(distinct track_id) as n from slice where name = 'async'",
        "select a.name || b.name as arrow from flow join slice a on slice_out = a.id join slice b on slice_in = b.id",
    ]);
    let of = |name: &str| {
        slices.iter().find(|row| row.text("name") == name).unwrap_or_else(|| panic!("{name} of {slices:?}"))
    };
    for name in ["begun", "complete", "from", "to"] {
        assert!(of(name).int("dur") >= 0 && !of(name).is_null("tid"), "{name} is on the thread");
    }
    assert_eq!(of("complete").int("dur"), 7000);
    assert!(!of("instant").is_null("upid"), "of the process");
    assert_eq!(tracks[0].int("n"), 2);
    assert!(of("scoped").int("dur") >= 0);
    assert_eq!(of("elsewhere").int("tid"), 4712);
    assert_eq!(arrows.iter().map(|row| row.text("arrow")).collect::<Vec<_>>(), ["fromto"]);
}
