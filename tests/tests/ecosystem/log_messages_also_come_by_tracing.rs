//! `tracing_subscriber` has its own logger, which makes events of messages.

use esatto_tests::sdk::{Recorder, Trace};
use tracing_subscriber::prelude::*;

use super::everything;

esatto_tests::scenario!(record, check);

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(&[]);
    tracing_log::LogTracer::init().expect("is the first");
    let layer = tracing_subscriber::registry().with(esatto_tracing::layer());
    tracing::subscriber::set_global_default(layer).expect("is the first");
    esatto_log::Logger::new().install().expect_err("there is a logger");
    let session = recorder.start(everything());
    log::error!(target: "disk", "full");
    recorder.note("line", line!() - 1);
    log::logger().log(&log::Record::builder().level(log::Level::Info).args(format_args!("nowhere")).build());
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let [rows, instants, places] = trace.query([
        "select prio, tag, msg from android_logs order by ts",
        "select name, category, extract_arg(arg_set_id, 'debug.message') as message,
            extract_arg(arg_set_id, 'debug.log_target') as target from slice where dur = 0 order by ts",
        "select count(*) as count from slice join args using (arg_set_id)
            where key in ('debug.log_file', 'debug.log_line', 'debug.log_module_path')",
    ]);
    let messages: Vec<_> = rows.iter().map(|row| (row.int("prio"), row.text("msg"))).collect();
    assert_eq!(messages, [(6, "full"), (4, "nowhere")]);
    let place = format!("log_messages_also_come_by_tracing.rs:{}", trace.fact("line"));
    assert!(rows[0].text("tag").ends_with(&place), "{rows:?}");
    assert_eq!(rows[1].text("tag"), "", "not a place without a file");
    let columns = ["name", "category", "message", "target"];
    let instants: Vec<_> = instants.iter().map(|row| columns.map(|column| row.text(column))).collect();
    let name = format!("log_messages_also_come_by_tracing:{}", trace.fact("line"));
    assert_eq!(instants, [[&name, "log", "full", "disk"], ["log", "log", "nowhere", ""]]);
    assert_eq!(places[0].int("count"), 0, "the place is said once");
}
