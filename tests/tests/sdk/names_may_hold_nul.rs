//! NUL is an ordinary character. Rust's texts are always UTF-8, but names of threads and files from
//! the system may not be.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use esatto::{CounterTrack, Track};
use esatto_tests::sdk::{Recorder, Trace};
use esatto_tests::tp::Row;
use esatto_trace::AnnotationValue;

esatto::categories! {
    static APP = "cat\0egory";
}

static COUNTER: CounterTrack = CounterTrack::new("coun\0ter");

esatto_tests::scenario!(record, check);

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(esatto::track_events(4096));
    let path = Path::new(OsStr::from_bytes(b"/tmp/\xff\0name"));
    esatto::instant!(APP, "static\0name", "key\0one" = "val\0ue", number = 1_u32);
    // Again, by numbers alone.
    esatto::instant!(APP, "static\0name", "key\0one" = "val\0ue", number = 2_u32);
    esatto::instant!(APP, dynamic: String::from("dyn\0amic"), |event| event.annotate("key\0two", path));
    let track = Track::with_name("tra\0ck", 1);
    esatto::instant!(APP, track: &track, "on a track");
    esatto::counter!(APP, &COUNTER, 5);
    let named = std::thread::spawn(|| {
        Track::of_this_thread().named("thr\0ead").describe_now();
        esatto::instant!(APP, "in a named thread");
    });
    named.join().expect("ends");
    let odd = std::thread::spawn(|| {
        // The system's name of the thread: any 15 bytes.
        std::fs::write("/proc/thread-self/comm", b"odd \xff\xc3 name").expect("it is this thread's own");
        esatto::instant!(APP, "in an odd thread");
    });
    odd.join().expect("ends");
    esatto::instant!(APP, "the last");
    recorder.finish(session);
}

/// Everything is in the trace; the trace processor's SQL ends its texts at NUL.
fn check(trace: &Trace) {
    let read = trace.read();
    assert!(read.errors.is_empty(), "{:?}", read.errors);
    let names: Vec<_> = read.events.iter().filter_map(|event| event.name.as_deref()).collect();
    for name in ["static\0name", "dyn\0amic"] {
        assert!(names.contains(&name), "{name:?} is not in {names:?}");
    }
    assert!(read.events.iter().all(|event| event.categories.iter().all(|category| category == "cat\0egory")));
    let annotations = read.events.iter().flat_map(|event| &event.annotations);
    let texts: Vec<_> =
        annotations.filter_map(|annotation| Some((&*annotation.name, text(&annotation.value)?))).collect();
    assert_eq!(texts, [("key\0one", "val\0ue"), ("key\0one", "val\0ue"), ("key\0two", "/tmp/\u{fffd}\0name")]);
    let mut tracks: Vec<_> = read.events.iter().filter_map(|event| event.track_name.as_deref()).collect();
    tracks.retain(|name| name.contains('\0'));
    assert_eq!(tracks, ["tra\0ck", "coun\0ter"]);

    let [slices, annotations, tracks, threads] = trace.query([
        "select name, category from slice order by ts",
        "select key, string_value as value from args where key glob 'debug.key*' order by value",
        "select name from track where name glob 'tra*' or name glob 'coun*' order by name",
        "select hex(thread.name) as name, slice.name as slice from slice join thread_track on slice.track_id = thread_track.id
            join thread using (utid) where slice.name glob 'in a*' order by ts",
    ]);
    let column = |rows: &[Row], name: &str| rows.iter().map(|row| row.text(name).to_owned()).collect::<Vec<_>>();
    let expected = ["static", "static", "dyn", "on a track", "in a named thread", "in an odd thread", "the last"]
        .map(String::from);
    assert_eq!(column(&slices, "name"), expected);
    assert!(slices.iter().all(|row| row.text("category") == "cat"));
    assert!(annotations.iter().all(|row| row.text("key") == "debug.key"));
    assert_eq!(column(&annotations, "value"), ["/tmp/\u{fffd}", "val", "val"]);
    assert_eq!(column(&tracks, "name"), ["coun", "tra"]);
    // "thr", and bytes that are no text.
    assert_eq!(column(&threads, "name"), ["746872", "6F646420FFC3206E616D65"]);
}

fn text(value: &AnnotationValue) -> Option<&str> {
    match value {
        AnnotationValue::String(text) => Some(text),
        _ => None,
    }
}
