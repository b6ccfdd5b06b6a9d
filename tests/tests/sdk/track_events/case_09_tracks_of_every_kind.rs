use esatto::{ChildOrdering, Merge, Track};
use esatto_tests::sdk::{Recorder, Trace};

use super::{sequences, text};

esatto::categories! { static APP = "app"; }
esatto_tests::scenario!(record, check);

static GROUP: Track =
    Track::with_name("group", 0).description("what belongs together").child_ordering(ChildOrdering::Explicit);
static UPPER: Track = Track::with_name("upper", 0).within(&GROUP).sibling_rank(-1);
static LOWER: Track = Track::with_name("lower", 0).within(&UPPER).sibling_rank(1).merge(Merge::Never);
static EVERYWHERE: Track = Track::with_name("everywhere", 0).at_root();
static PER_THREAD: Track = Track::with_name("per thread", 0).in_this_thread();

fn on(track: &Track, name: &str) {
    let _slice = esatto::slice!(APP, track: track, dynamic: name);
}

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    Track::of_process().named("renamed process").describe_now();
    let session = recorder.start(esatto::track_events(1024));
    let second = recorder.start(esatto::track_events(1024));
    let object = 5_u64;
    let dynamic = Track::dynamic(format!("lane {}", 1), 7).child_of(&GROUP);
    // A child first: its ancestors are described before it.
    on(&LOWER, "lower");
    on(&dynamic, "dynamic");
    on(&Track::process(77).named("custom"), "custom");
    on(&Track::pointer(&raw const object).named("object"), "pointer");
    on(&Track::global(1234).named("global"), "global");
    on(&EVERYWHERE, "everywhere");
    on(&PER_THREAD, "per thread");
    on(&Track::of_process(), "process");
    on(&Track::of_this_thread(), "thread");
    on(&Track::process(78).named("by key").merge(Merge::ByKey("key")), "key 1");
    on(&Track::process(79).named("by the same key").merge(Merge::ByKey("key")), "key 2");
    for _ in 0..2 {
        on(&Track::unique("request"), "unique");
    }
    // Equal ids on two levels.
    for id in [1, 2] {
        let connection = Track::with_name("connection", id);
        on(&Track::with_name("stream", id).child_of(&connection), &format!("stream {id}"));
    }
    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    std::thread::spawn(move || {
        Track::of_this_thread().named("renamed thread").describe_now();
        on(&PER_THREAD, "per other thread");
        on(&Track::of_thread(tid), "from elsewhere");
        esatto::instant!(APP, "own");
    })
    .join()
    .unwrap();
    // Described while it is used, and by itself.
    Track::with_name("alone", 0).description("has no events").describe_now();
    recorder.note("custom", Track::process(77).uuid());
    recorder.finish(session);
    recorder.finish_as("second", second);
}

fn check(trace: &Trace) {
    check_one(trace);
    check_one(&trace.other("second"));
}

fn check_one(trace: &Trace) {
    let [slices, threads, processes] = trace.query([
        "select slice.name as slice, track.name as track, parent.name as parent, grand.name as grand, thread_track.utid as utid,
                process_track.upid as upid, slice.dur as dur, slice.track_id as track_id
            from slice join track on slice.track_id = track.id
                left join track parent on track.parent_id = parent.id left join track grand on parent.parent_id = grand.id
                left join thread_track on thread_track.id = track.id left join process_track on process_track.id = track.id",
        "select utid, name from thread where name is not null",
        "select name from process where pid > 0",
    ]);
    let of = |name: &str| {
        slices.iter().find(|row| row.text("slice") == name).unwrap_or_else(|| panic!("{name} of {slices:?}"))
    };
    let lane = |name: &str| (of(name).text("track"), of(name).text("parent"), of(name).text("grand"));
    assert!(slices.iter().all(|row| row.int("dur") >= 0));
    assert_eq!(lane("lower"), ("lower", "upper", "group"));
    assert_eq!(lane("dynamic"), ("lane 1", "group", ""));
    for (name, track) in [("custom", "custom"), ("pointer", "object"), ("unique", "request")] {
        assert_eq!(lane(name), (track, "", ""));
        assert!(!of(name).is_null("upid"), "{name} belongs to the process");
    }
    assert_eq!([lane("stream 1"), lane("stream 2")], [("stream", "connection", ""); 2]);
    assert_ne!(of("stream 1").int("track_id"), of("stream 2").int("track_id"));
    for name in ["global", "everywhere"] {
        assert_eq!(lane(name), (name, "", ""));
        assert!(of(name).is_null("upid") && of(name).is_null("utid"), "{name} belongs to nothing");
    }
    assert!(!of("process").is_null("upid"));
    let thread = of("thread").int("utid");
    assert_eq!(of("from elsewhere").int("utid"), thread);
    let other = of("own").int("utid");
    assert_eq!((of("per thread").int("utid"), of("per other thread").int("utid")), (thread, other));
    assert_ne!(thread, other);
    assert_eq!(threads.iter().find(|row| row.int("utid") == other).expect("named").text("name"), "renamed thread");
    assert_eq!(processes[0].text("name"), "renamed process");

    let packets = trace.packets();
    let described: Vec<_> =
        sequences(&packets).into_iter().flatten().filter_map(|packet| packet.track_descriptor()).collect();
    let names: Vec<_> = described.iter().map(|d| text(d.static_name())).filter(|name| !name.is_empty()).collect();
    let place = |name: &str| names.iter().position(|n| n == name).unwrap_or_else(|| panic!("{name} of {names:?}"));
    assert!(place("group") < place("upper") && place("upper") < place("lower"), "ancestors first: {names:?}");
    assert_eq!(names.iter().filter(|name| *name == "group").count(), 1, "once per sequence");
    let find = |name: &str| described.iter().find(|d| text(d.static_name()) == name).expect("is described");
    assert_eq!(text(find("group").description()), "what belongs together");
    assert_eq!(find("group").child_ordering().map(|o| o.0), Some(3));
    assert_eq!(find("upper").sibling_order_rank(), Some(-1));
    assert_eq!(find("lower").sibling_merge_behavior().map(|b| b.0), Some(2));
    assert_eq!(text(find("by key").sibling_merge_key()), "key");
    assert_eq!(find("custom").uuid(), trace.fact("custom").parse().ok());
    assert_eq!(text(find("alone").description()), "has no events");
    assert!(described.iter().any(|d| text(d.name()) == "lane 1"), "a name made at run time is no constant");
}
