//! The page shows call stacks and single kernel events, as many as the trace processor finds.

use std::path::PathBuf;

use esatto_tests::{Harness, Implementation, Instance, Peer, Skip, skip, tp};
use serde_json::json;

use crate::profiled::{HEAP, KERNEL_EVENTS, SAMPLES, parsed, profiled};
use crate::the_page_shows_what_is_in_the_trace::{page_of, play_with, trace};

/// Kernel events that other rows of the page show.
const SHOWN_ELSEWHERE: &str = "'sched_switch', 'sched_waking', 'sched_wakeup', 'sched_wakeup_new', \
     'sched_blocked_reason', 'cpu_frequency', 'cpu_idle'";

fn scenario(name: &str) -> Result<(), Skip> {
    Peer::Browser.require()?;
    let harness = Harness::new();
    let page = page_of(&harness, &profiled(), "t.pftrace");
    let facts = json!({ "samples": SAMPLES, "events": KERNEL_EVENTS, "heap": HEAP });
    play_with(&harness, &page, name, &facts);
    Ok(())
}

#[test]
fn samples_and_heaps_as_flame_graphs() {
    skip(|| scenario("stacks"));
}

#[test]
fn kernel_events_with_their_arguments() {
    skip(|| scenario("events"));
}

#[test]
fn stacks_and_events_without_a_pointer() {
    skip(|| scenario("stacksByKeyboard"));
}

#[test]
fn stacks_and_events_on_a_phone() {
    skip(|| scenario("stacksOnPhone"));
}

#[test]
fn the_trace_processor_finds_the_same_numbers_in_the_trace_of_these_tests() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let path = harness.write("t.pftrace", profiled());
        let number = |sql: &str| tp::rows(&path, &format!("select (select {sql}) as number"))[0].int("number");
        let wanted = |number: usize| i64::try_from(number).expect("a small number");
        assert_eq!(number("count(*) from perf_sample"), wanted(SAMPLES[0]));
        let of_thread = "count(*) from perf_sample join thread using (utid) where tid = 51";
        assert_eq!(number(of_thread), wanted(SAMPLES[1]));
        let events = format!("count(*) from ftrace_event where name not in ({SHOWN_ELSEWHERE})");
        assert_eq!(number(&events), wanted(KERNEL_EVENTS));
        let dumps = tp::rows(
            &path,
            "select sum(size) as size, sum(iif(size > 0, size, 0)) as allocated from heap_profile_allocation \
             group by ts order by ts",
        );
        let mut sums = [0, 0];
        for (dump, [in_use, all]) in dumps.iter().zip(HEAP) {
            sums = [sums[0] + dump.int("size"), sums[1] + dump.int("allocated")];
            assert_eq!(sums.map(|sum| u64::try_from(sum).expect("not below 0")), [in_use, all]);
        }
        Ok(())
    });
}

/// Records kernel events of the machine.
fn machine(harness: &Harness) -> PathBuf {
    let _service = harness.service(Implementation::Theirs);
    let _probes = harness.probes(Implementation::Theirs);
    let instance = Instance::new("report");
    let config = format!(
        r#"buffers {{ size_kb: 32768 fill_policy: DISCARD }}
        data_sources {{ config {{ name: "linux.ftrace" ftrace_config {{
          instance_name: "{}" buffer_size_kb: 4096 ftrace_events: "sched/sched_switch"
          ftrace_events: "signal/signal_generate" ftrace_events: "task/task_newtask"
          ftrace_events: "irq/softirq_raise" ftrace_events: "task/task_rename" }} }} }}"#,
        instance.name()
    );
    let mut recording = harness.record(Implementation::Theirs, "trace", &config);
    instance.wait_until_on("task/task_rename");
    let script = "trap : USR1; for i in 1 2 3; do kill -USR1 $$; (sleep 0.02; true) & wait; done";
    let status = std::process::Command::new("sh").args(["-c", script]).status().expect("sh is there");
    assert!(status.success(), "{status}");
    recording.stop()
}

#[test]
fn kernel_events_of_perfettos_probes_are_all_on_the_page() {
    skip(|| {
        [Peer::Official, Peer::TraceProcessor, Peer::Browser].into_iter().try_for_each(Peer::require)?;
        esatto_tests::mount_tracefs()?;
        let harness = Harness::new();
        let path = machine(&harness);
        let sql = format!(
            "select name, count(*) as number from ftrace_event where name not in ({SHOWN_ELSEWHERE}) group by name"
        );
        let expected: serde_json::Map<String, serde_json::Value> =
            tp::rows(&path, &sql).iter().map(|row| (row.text("name").to_owned(), json!(row.int("number")))).collect();
        assert!(expected["signal_generate"].as_i64() >= Some(3), "{expected:?}");
        let page = page_of(&harness, &std::fs::read(&path).expect("the trace"), "machine.pftrace");
        play_with(&harness, &page, "machineEvents", &json!({ "events": expected }));
        Ok(())
    });
}

#[test]
fn samples_of_programs_and_of_the_kernel_are_on_the_page() {
    skip(|| {
        [Peer::TraceProcessor, Peer::Browser].into_iter().try_for_each(Peer::require)?;
        let harness = Harness::new();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/queries/traces/profiles.textproto");
        let trace = parsed(&std::fs::read_to_string(source).expect("the trace of the queries"));
        let path = harness.write("t.pftrace", &trace);
        let rows = tp::rows(
            &path,
            "with samples as (select callsite_id from perf_sample union all select callsite_id from \
             cpu_profile_stack_sample) select name, count() as number from samples left join \
             (select c.id as callsite, f.name from stack_profile_callsite c join stack_profile_frame f on f.id = \
             (select frame_id from stack_profile_callsite o where o.depth = 0 and o.id in \
             (with recursive way(id) as (select c.id union all select p.parent_id from way join \
             stack_profile_callsite p on p.id = way.id where p.parent_id is not null) select id from way))) \
             on callsite = callsite_id group by name",
        );
        let samples: i64 = rows.iter().map(|row| row.int("number")).sum();
        let named = |row: &&tp::Row| !row.is_null("name") && row.text("name") == "own";
        let own: i64 = rows.iter().filter(named).map(|row| row.int("number")).sum();
        assert!(samples > 10 && own >= 2, "{samples} samples, {own} of a program's own");
        let page = page_of(&harness, &trace, "t.pftrace");
        play_with(&harness, &page, "samplesOfAllKinds", &json!({ "samples": samples, "outermost": { "own": own } }));
        Ok(())
    });
}

#[test]
fn a_trace_without_stacks_has_no_pages_for_them() {
    skip(|| {
        Peer::Browser.require()?;
        let harness = Harness::new();
        let page = page_of(&harness, &trace("track-events"), "t.pftrace");
        play_with(&harness, &page, "noStacks", &json!(null));
        Ok(())
    });
}
