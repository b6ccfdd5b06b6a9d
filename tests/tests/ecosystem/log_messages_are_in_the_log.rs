use esatto_tests::sdk::{Recorder, Trace};

use super::everything;

esatto_tests::scenario!(record, check);

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(&[&esatto_log::LOG]);
    esatto_log::Logger::new().install().expect("is the first");
    let session = recorder.start(everything());
    log::error!(target: "disk", "full");
    log::trace!("step {}", 1);
    recorder.note("line", line!() - 1);
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let [rows, instants] = trace.query([
        "select prio, tag, msg from android_logs order by ts",
        "select name, category, extract_arg(arg_set_id, 'debug.message') as message,
            extract_arg(arg_set_id, 'debug.target') as target from slice where dur = 0 order by ts",
    ]);
    let rows: Vec<_> = rows.iter().map(|row| (row.int("prio"), row.text("msg"))).collect();
    assert_eq!(rows, [(6, "full"), (2, "step 1")]);
    let columns = ["category", "message", "target"];
    let found: Vec<_> = instants.iter().map(|row| columns.map(|column| row.text(column))).collect();
    assert_eq!(found, [["log", "full", "disk"], ["log", "step 1", module_path!()]]);
    assert_eq!(instants[1].text("name"), format!("log_messages_are_in_the_log:{}", trace.fact("line")));
    let [tags] = trace.query(["select tag from android_logs order by ts desc limit 1"]);
    let place = format!("log_messages_are_in_the_log.rs:{}", trace.fact("line"));
    assert!(tags[0].text("tag").ends_with(&place), "{tags:?}");
}
