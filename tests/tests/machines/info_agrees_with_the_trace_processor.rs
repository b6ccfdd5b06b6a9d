//! `esatto info` finds the same events of all machines as the trace processor, at the same times.
//! One of the machines was booted at another time.

use crate::clocks_of_two_machines_are_aligned::time_namespace;
use crate::guest::{Guest, host, loopback_address};
use esatto_tests::workload::{CONFIG, Workload};
use esatto_tests::{Harness, Implementation, Peer, Program, Skip, esatto_bin, tp};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const WORKLOAD: Workload = Workload { threads: 2, rounds: 50, pause_us: 500 };

/// Longest time between the start of a program and its first slice on a busy machine. The clocks of
/// the machines are days apart.
const MINUTE_NS: i64 = 60_000_000_000;

/// Machine and pid of a process, with the number of its slices and the time of the first one.
type Programs = BTreeMap<(i64, i64), (i64, i64)>;
/// Number of slices and sum of their durations, by name.
type Names = BTreeMap<String, (i64, i64)>;

fn info(trace: &Path, options: &[&str]) -> String {
    let info = Command::new(esatto_bin()).arg("info").arg(trace).args(options).output().expect("it runs");
    assert!(info.status.success(), "{info:?}");
    String::from_utf8(info.stdout).expect("text")
}

/// Reads the report of `esatto info --json`.
fn of_info(json: &Value) -> (Programs, Names, i64) {
    let int = |value: &Value| value.as_i64().unwrap_or_else(|| panic!("no integer: {value}"));
    let processes = json["processes"].as_array().expect("a list").iter();
    let programs = processes.filter(|process| process["slices"] != 0).map(|process| {
        let slices = (int(&process["slices"]), int(&process["first_packet_ns"]));
        ((int(&process["machine_id"]), int(&process["pid"])), slices)
    });
    let mut names = Names::new();
    for entry in json["slices"]["by_name"].as_array().expect("a list") {
        let sums = names.entry(entry["name"].as_str().expect("a name").to_owned()).or_default();
        sums.0 += int(&entry["count"]);
        sums.1 += int(&entry["total_ns"]);
    }
    (programs.collect(), names, int(&json["start_ns"]))
}

/// The same, from the trace processor.
fn of_the_trace_processor(trace: &Path) -> (Programs, Names, i64) {
    // A slice is on a track of a thread or of a process. The host's machine is NULL.
    let sql = "select coalesce(m.raw_id, 0) as machine, p.pid, count(*) as slices, min(s.ts) as first from slice s
          left join thread_track k on s.track_id = k.id left join thread t using (utid)
          left join process_track q on s.track_id = q.id
          join process p on p.upid = coalesce(t.upid, q.upid) left join machine m on p.machine_id = m.id
          group by 1, 2;
        select name, count(*) as slices, sum(max(dur, 0)) as total from slice group by name;
        select min(ts) as start from (select ts from slice union all select ts from counter);";
    let [programs, names, start] = tp::query(trace, sql).try_into().expect("three statements");
    let programs = programs.iter().map(|row| {
        let slices = (row.int("slices"), row.int("first"));
        ((row.int("machine"), row.int("pid")), slices)
    });
    let names = names.iter().map(|row| (row.text("name").to_owned(), (row.int("slices"), row.int("total"))));
    (programs.collect(), names.collect(), start[0].int("start"))
}

/// Checks that the starts of programs are in order on one axis, and named by machine.
fn assert_starts(json: &Value, text: &str, programs: &[(&str, &Program)]) {
    let (_, table) = text.split_once("\nStarts of programs\n").expect("a table");
    for (machine, program) in programs {
        let processes = json["processes"].as_array().expect("a list");
        let process = processes.iter().find(|process| process["pid"] == program.pid()).expect("the program");
        let times = ["connected_ns", "enabled_ns", "first_packet_ns"].map(|key| process[key].as_i64().expect("a time"));
        assert!(times.is_sorted(), "{process}");
        let distance = (times[0] - json["start_ns"].as_i64().expect("a time")).abs();
        assert!(distance < MINUTE_NS, "{process}");
        let cells = [(*machine).to_owned(), program.pid().to_string(), "esatto-producer".to_owned()];
        let row = table.lines().find(|row| row.split_whitespace().take(3).eq(&cells));
        assert!(row.is_some_and(|row| row.split_whitespace().count() > 3), "{cells:?} is not in\n{text}");
    }
}

fn scenario(service: Implementation) -> Result<(), Skip> {
    Peer::TraceProcessor.require()?;
    let harness = Harness::new();
    let (_holder, wrapper) = time_namespace(&harness)?;
    let address = loopback_address();
    let _service = host(&harness, service, &address);
    let guests = [Guest::inside(&harness, "guest1", wrapper), Guest::new(&harness, "guest2")];
    let _relays = guests.each_ref().map(|guest| guest.relay(&address));
    let mut recording = harness.record(Implementation::Ours, "trace", &format!("{CONFIG}trace_all_machines: true\n"));
    harness.wait_for_sessions(1);
    let mut programs = vec![
        harness.application(Implementation::Ours, WORKLOAD),
        guests[0].application(Implementation::Ours, WORKLOAD),
        guests[1].application(Implementation::Ours, WORKLOAD),
    ];
    if Peer::Producer.require().is_ok() {
        programs.push(guests[0].application(Implementation::Theirs, WORKLOAD));
    }
    for program in &mut programs {
        program.wait_ok();
    }
    let trace = harness.stop(&mut recording);
    tp::assert_clean(&trace);

    let json: Value = serde_json::from_str(&info(&trace, &["--json"])).expect("JSON");
    assert_eq!(json["problems"], serde_json::json!({}));
    assert_eq!(of_info(&json), of_the_trace_processor(&trace));
    let (found, ..) = of_info(&json);
    let ids = [0, guests[0].id(), guests[1].id(), guests[0].id()];
    let mut expected = programs.iter().zip(ids).map(|(program, id)| (id, program.pid().into())).collect::<Vec<_>>();
    expected.sort_unstable();
    assert_eq!(found.into_keys().collect::<Vec<_>>(), expected);

    assert_starts(
        &json,
        &info(&trace, &[]),
        &[("host", &programs[0]), ("guest1", &programs[1]), ("guest2", &programs[2])],
    );
    Ok(())
}
esatto_tests::for_each_service!(scenario);
