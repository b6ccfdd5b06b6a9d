use esatto::{Frame, Location, LogPriority};
use esatto_tests::sdk::{Recorder, Scenario, Trace};

use super::{sequences, text};

esatto::categories! { static APP = "app"; }
// A trace processor before v53 does not know call stacks. The test finds fields that the trace
// processor does not show in the packets.
esatto_tests::scenario!(Scenario::new(record).check(check).tolerating(&["unknown_extension_fields"]));

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(esatto::track_events(1024));
    for _ in 0..2 {
        esatto::instant!(APP, "number", |event| event.correlate(17));
        esatto::instant!(APP, "text", |event| event.correlate("request 17"));
        esatto::instant!(APP, "interned", |event| event.correlate(esatto::interned("request 18")));
        esatto::instant!(APP, "here", |event| event.location(esatto::here!()));
        esatto::instant!(APP, "script", |event| event.location(Location::new("a.lua", 3).in_function("f")));
        let stack = [Frame::new("main").at("a.rs", 1), Frame::new("work")];
        esatto::instant!(APP, "stack", |event| {
            event.callstack(stack);
            event.callstack_weight(2.5);
        });
        esatto::instant!(APP, "interned stack", |event| event.interned_callstack(&stack));
        esatto::instant!(APP, "log", |event| event.log(LogPriority::Warn, "careful", Some(Location::new("b.rs", 5))));
        esatto::instant!(APP, "bare log", |event| event.log(LogPriority::Info, "bare", None));
        esatto::instant!(APP, "task", |event| event.task_posted_from(Location::new("c.rs", 9).in_function("post")));
    }
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let [args, logs] = trace.query([
        "select slice.name as slice, key, display_value as value from slice join args using (arg_set_id)",
        "select prio, tag, msg from android_logs order by ts",
    ]);
    let of = |slice: &str, key: &str| -> Vec<&str> {
        let found = args.iter().filter(|row| row.text("slice") == slice && row.text("key").ends_with(key));
        found.map(|row| row.text("value")).collect()
    };
    assert_eq!(of("number", "correlation_id"), ["tp:#17"; 2]);
    assert_eq!(of("text", "correlation_id"), ["request 17"; 2]);
    assert_eq!(of("interned", "correlation_id"), ["request 18"; 2]);
    assert!(of("here", "file_name").iter().all(|file| file.ends_with("case_15_operations_places_and_messages.rs")));
    assert_eq!(of("here", "line_number").len(), 2);
    assert!(of("here", "function_name").iter().all(|function| function.contains("case_15")));
    assert_eq!(of("script", "file_name"), ["a.lua"; 2]);
    assert_eq!(of("script", "function_name"), ["f"; 2]);
    assert_eq!(of("task", "file_name"), ["c.rs"; 2]);
    let logs: Vec<_> = logs.iter().map(|row| (row.int("prio"), row.text("tag"), row.text("msg"))).collect();
    assert_eq!(logs, [(5, "b.rs:5", "careful"), (4, "", "bare"), (5, "b.rs:5", "careful"), (4, "", "bare")]);

    let packets = trace.packets();
    let sequences = sequences(&packets);
    let [packets] = &sequences[..] else { panic!("{} sequences", sequences.len()) };
    let events: Vec<_> = packets.iter().filter_map(|packet| packet.track_event()).collect();
    let inline: Vec<_> = events.iter().filter_map(|event| event.callstack()).collect();
    assert_eq!(inline.len(), 2);
    let frames: Vec<_> =
        inline[0].frames().map(|f| (text(f.function_name()), text(f.source_file()), f.line_number())).collect();
    assert_eq!(frames, [("main".into(), "a.rs".into(), Some(1)), ("work".into(), String::new(), None)]);
    assert_eq!(events.iter().filter_map(|event| event.callstack_weight()).collect::<Vec<_>>(), [2.5, 2.5]);
    assert_eq!(events.iter().filter_map(|event| event.callstack_iid()).collect::<Vec<_>>(), [1, 1]);
    let data: Vec<_> = packets.iter().filter_map(|packet| packet.interned_data()).collect();
    let count = |counted: fn(&esatto::schema::InternedDataReader<'_>) -> usize| data.iter().map(counted).sum::<usize>();
    assert_eq!(count(|data| data.callstacks().count()), 1, "once");
    assert_eq!(count(|data| data.frames().count()), 2);
    assert_eq!(count(|data| data.source_locations().count()), 4);
    assert_eq!(count(|data| data.correlation_id_str().count()), 1);
}
