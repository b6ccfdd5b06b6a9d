use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use esatto_tests::sdk::{Recorder, Trace};

use super::everything;

esatto::categories! { static APP = "app"; }

static HOOKS: AtomicU32 = AtomicU32::new(0);

mod also_in_threads {
    use esatto_tests::sdk::Scenario;
    // The event whose value panics is left out, and the trace says so.
    const LOSS: &[&str] = &["traced_buf_sequence_packet_loss"];
    esatto_tests::scenario!(Scenario::new(super::record).check(super::check).tolerating(LOSS));
}

/// Panics inside of a trace point.
struct Evil;

impl fmt::Debug for Evil {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("inside")
    }
}

fn record(recorder: &Recorder) {
    std::panic::set_hook(Box::new(|_| {
        HOOKS.fetch_add(1, Ordering::Relaxed);
    }));
    esatto::trace_panics();
    esatto::trace_panics();
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(everything());
    let work = || {
        let _slice = esatto::slice!(APP, "work");
        panic!("number {}", 7);
    };
    std::thread::spawn(work).join().expect_err("panics");
    let inside = || esatto::instant!(APP, "evil", value = esatto::debug(Evil));
    std::panic::catch_unwind(inside).expect_err("panics");
    std::panic::catch_unwind(|| std::panic::panic_any(5)).expect_err("panics");
    assert_eq!(HOOKS.load(Ordering::Relaxed), 3, "the hook of the program runs, too");
    let _slice = esatto::slice!(APP, "after");
    drop(_slice);
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let [instants, slices, logs] = trace.query([
        "select slice.name as name, category, extract_arg(slice.arg_set_id, 'debug.message') as message, parent.name as parent
            from slice left join (select id, name from slice) as parent on slice.parent_id = parent.id
            where category = 'panic' order by ts",
        "select name, dur from slice where name in ('work', 'after') order by ts",
        "select prio, msg, tag from android_logs order by ts",
    ]);
    let found: Vec<_> = instants.iter().map(|row| (row.text("message"), row.text("parent"))).collect();
    assert_eq!(found, [("number 7", "work"), ("(a value that is no text)", "")]);
    assert_eq!(slices.iter().map(|row| row.text("name")).collect::<Vec<_>>(), ["work", "after"]);
    assert!(slices.iter().all(|row| row.int("dur") >= 0), "{slices:#?}");
    assert_eq!(logs.iter().map(|row| row.int("prio")).collect::<Vec<_>>(), [7, 7]);
    assert!(logs[0].text("tag").contains("panics_are_instants.rs"), "{logs:#?}");
}

mod that_end_the_process {
    use super::*;
    use esatto_tests::sdk::Scenario;
    esatto_tests::scenario!([ours, theirs] Scenario::new(die).dying());
}

fn die(recorder: &Recorder) {
    esatto::trace_panics();
    let _tracing = recorder.connect(CATEGORIES);
    let _session = recorder.start(everything());
    let next = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        next(info);
        std::process::abort();
    }));
    panic!("the end");
}
