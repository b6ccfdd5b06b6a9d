//! Manifests give traces machines, and places on the clock of the result.

use crate::{BOOTTIME, Folder, REALTIME, Trace, slices, zip};
use esatto_inputs::Inputs;
use esatto_trace::{Engine, Summary};

const S: u64 = 1_000_000_000;

/// A machine that booted at this second of the day, with an instant 5 s later.
fn booted(name: &str, second: u64) -> Vec<u8> {
    Trace::default().clocks(&[(BOOTTIME, S), (REALTIME, (second + 1) * S)]).instant(5 * S, name).0
}

fn read(files: &[(&str, &[u8])], manifest: &str) -> Result<(Engine, Summary, Vec<String>), String> {
    let folder = Folder::new();
    let manifest = format!("{{\"perfetto_manifest\": {{\"version\": 1, {manifest}}}}}");
    let all: Vec<(&str, &[u8])> = files.iter().copied().chain([("m.json", manifest.as_bytes())]).collect();
    let inputs = Inputs::open(&[folder.write("archive.zip", &zip(&all))]).map_err(|error| error.to_string())?;
    let (engine, summary) = inputs.read().map_err(|error| error.to_string())?;
    Ok((engine, summary, inputs.notes()))
}

/// Returns the times of slices in seconds, by name.
fn seconds(engine: &Engine) -> Vec<(String, f64)> {
    slices(engine).into_iter().map(|(name, ts)| (name, ts as f64 / 1e9)).collect()
}

fn pair(first: (&str, f64), second: (&str, f64)) -> Vec<(String, f64)> {
    [first, second].map(|(name, at)| (name.to_owned(), at)).to_vec()
}

const MACHINES: &str = r#"{"path": "a", "machine": {"name": "phone"}}, {"path": "b", "machine": {"name": "watch"}}"#;

#[test]
fn machines_meet_at_the_time_of_day() {
    let (a, b) = (booted("a", 100), booted("b", 103));
    let files: &[(&str, &[u8])] = &[("a", &a), ("b", &b)];
    let (engine, summary, _) = read(files, &format!("\"files\": [{MACHINES}]")).unwrap();
    assert_eq!(seconds(&engine), pair(("a", 5.0), ("b", 8.0)));
    let names: Vec<Option<&str>> = summary.machines.iter().map(esatto_trace::MachineSummary::name).collect();
    assert_eq!(names, [Some("phone"), Some("watch")]);
    assert_eq!(summary.machines[1].ahead_ns, Some(-3_000_000_000));
    let ids: Vec<i64> = engine.tables.machine.raw_id.clone();
    assert_eq!(ids, [0, 1 << 32, (1 << 32) + 1]);
    // The clock of the other one.
    let time = r#""trace_time": {"clock": "BOOTTIME", "file": "b"}"#;
    let (engine, ..) = read(files, &format!("{time}, \"files\": [{MACHINES}]")).unwrap();
    assert_eq!(seconds(&engine), pair(("a", 2.0), ("b", 5.0)));
    // The time of day itself.
    let time = r#""trace_time": {"clock": "REALTIME", "file": "a"}"#;
    let (engine, ..) = read(files, &format!("{time}, \"files\": [{MACHINES}]")).unwrap();
    assert_eq!(seconds(&engine), pair(("a", 105.0), ("b", 108.0)));
}

#[test]
fn one_machine_has_one_clock() {
    let (a, b) = (booted("a", 100), booted("b", 103));
    let files: &[(&str, &[u8])] = &[("a", &a), ("b", &b)];
    let (engine, ..) = read(files, "\"files\": []").unwrap();
    assert_eq!(seconds(&engine), pair(("a", 5.0), ("b", 5.0)));
    let same = r#"{"path": "a", "machine": {"name": "x"}}, {"path": "b", "machine": {"name": "x"}}"#;
    let (engine, summary, _) = read(files, &format!("\"files\": [{same}]")).unwrap();
    assert_eq!(seconds(&engine), pair(("a", 5.0), ("b", 5.0)));
    assert_eq!(summary.machines.len(), 1);
}

#[test]
fn rules_relate_clocks() {
    let (a, b) = (booted("a", 100), booted("b", 103));
    let files: &[(&str, &[u8])] = &[("a", &a), ("b", &b)];
    let with = |clocks: &str| {
        let b = format!(r#"{{"path": "b", "machine": {{"name": "watch"}}, "clocks": {{{clocks}}}}}"#);
        let manifest = format!(r#""files": [{{"path": "a", "machine": {{"name": "phone"}}}}, {b}]"#);
        read(files, &manifest).map(|(engine, ..)| seconds(&engine))
    };
    let to = r#""sync_to": {"file": "a", "clock": "BOOTTIME"}"#;
    let same = with(&format!(r#""clock": "BOOTTIME", {to}, "offset_ns": 250000000"#)).unwrap();
    assert_eq!(same, pair(("a", 5.0), ("b", 5.25)));
    // By way of another clock of its own: its time of day is 4 s before the clock of the other.
    let day = with(&format!(r#""clock": "REALTIME", {to}, "offset_ns": -100000000000"#)).unwrap();
    assert_eq!(day, pair(("a", 5.0), ("b", 8.0)));
    // In the other direction, and in a circle.
    let manifest = format!(
        r#""files": [{{"path": "a", "machine": {{"name": "phone"}}, "clocks": {{"clock": "BOOTTIME",
             "sync_to": {{"file": "b", "clock": "BOOTTIME"}}, "offset_ns": 1000000000}}}},
           {{"path": "b", "machine": {{"name": "watch"}}, "clocks": {{"clock": "BOOTTIME", {to}, "offset_ns": -1000000000}}}}]"#
    );
    let (engine, ..) = read(files, &manifest).unwrap();
    assert_eq!(seconds(&engine), pair(("b", 4.0), ("a", 5.0)));
}

#[test]
fn traces_without_clocks_are_pinned() {
    let a = booted("a", 100);
    let json = br#"[{"ph":"X","pid":1,"tid":1,"ts":1000000,"dur":1,"name":"json"}]"#;
    let files: &[(&str, &[u8])] = &[("a", &a), ("j.json", json)];
    let pin = |offset: i64| {
        let clocks = format!(r#"{{"sync_to": {{"file": "a", "clock": "BOOTTIME"}}, "offset_ns": {offset}}}"#);
        format!(r#""files": [{{"path": "a"}}, {{"path": "j.json", "clocks": {clocks}}}]"#)
    };
    let (engine, ..) = read(files, &pin(3_000_000_000)).unwrap();
    assert_eq!(seconds(&engine), pair(("json", 4.0), ("a", 5.0)));
    // Times before the start of the result have no place.
    let (engine, ..) = read(files, &pin(-3_000_000_000)).unwrap();
    assert_eq!(seconds(&engine), [("a".to_owned(), 5.0)]);
    let stats = &engine.tables.stats;
    let name = |row: usize| engine.tables.strings.get(stats.name[row]);
    assert!((0..stats.name.len()).any(|row| name(row) == "trace_sorter_negative_timestamp_dropped"));
    // A trace with clocks cannot be pinned.
    let manifest = r#""files": [{"path": "j.json"}, {"path": "a", "clocks": {"sync_to": {"file": "j.json"}}}]"#;
    let (_, summary, _) = read(files, manifest).unwrap();
    let errors: Vec<String> = summary.errors.iter().map(ToString::to_string).collect();
    assert!(errors[0].starts_with("a is left out: ") && errors[0].contains("pins the file"), "{errors:?}");
}

#[test]
fn machines_of_a_relay_have_names() {
    let a = Trace::default().instant(S, "host").instant_of(7, 2 * S, "guest").0;
    let files: &[(&str, &[u8])] = &[("a", &a)];
    let names = r#""files": [{"path": "a", "machines": [{"id": 0, "name": "h"}, {"id": 7, "name": "g"}]}]"#;
    let (engine, summary, _) = read(files, names).unwrap();
    assert_eq!(slices(&engine).len(), 2);
    let names: Vec<Option<&str>> = summary.machines.iter().map(esatto_trace::MachineSummary::name).collect();
    assert_eq!(names, [Some("h"), Some("g")]);
    for (rules, why) in [
        (r#""machines": [{"id": 0, "name": "h"}]"#, "does not declare machine 7"),
        (r#""machine": {"name": "h"}"#, "and this is machine 7"),
    ] {
        let (_, summary, _) = read(files, &format!(r#""files": [{{"path": "a", {rules}}}]"#)).unwrap();
        let errors: Vec<String> = summary.errors.iter().map(ToString::to_string).collect();
        assert!(errors.len() == 1 && errors[0].contains(why), "{errors:?}");
    }
}

#[test]
fn processes_of_a_machine_are_the_same_in_all_traces() {
    let process = |pid: i32, ts: u64| {
        let trace = Trace::default().packet(0, |packet| {
            let mut descriptor = packet.track_descriptor();
            descriptor.uuid(5);
            descriptor.process().pid(pid);
        });
        let trace = trace.packet(0, |packet| {
            packet.timestamp(ts);
            packet.track_event().r#type(esatto_schema::track_event::Type::TYPE_INSTANT).track_uuid(5).name("x");
        });
        trace.0
    };
    let (a, b) = (process(42, 10), process(42, 20));
    let files: &[(&str, &[u8])] = &[("a", &a), ("b", &b)];
    let pids = |engine: &Engine| engine.tables.process.pid.iter().filter(|pid| **pid == 42).count();
    assert_eq!(pids(&read(files, "\"files\": []").unwrap().0), 1);
    assert_eq!(pids(&read(files, &format!("\"files\": [{MACHINES}]")).unwrap().0), 2);
}

#[test]
fn clocks_without_a_relation_are_left_out() {
    // Its trace clock is the monotonic one, and it knows no other.
    let a = booted("a", 100);
    let b = Trace::default().packet(0, |packet| {
        let mut snapshot = packet.clock_snapshot();
        snapshot.clocks().clock_id(3).timestamp(S);
        snapshot.primary_trace_clock(esatto_schema::BuiltinClock::BUILTIN_CLOCK_MONOTONIC);
    });
    let b = b.instant(5 * S, "b").0;
    let files: &[(&str, &[u8])] = &[("a", &a), ("b", &b)];
    let (engine, summary, _) = read(files, &format!("\"files\": [{MACHINES}]")).unwrap();
    assert_eq!(seconds(&engine), [("a".to_owned(), 5.0)]);
    let errors: Vec<String> = summary.errors.iter().map(ToString::to_string).collect();
    assert!(errors[0].contains("its clock has no relation"), "{errors:?}");
}

#[test]
fn manifests_have_limits() {
    let a = booted("a", 100);
    let files: &[(&str, &[u8])] = &[("a", &a)];
    let (_, _, notes) = read(files, r#""files": [{"path": "z"}]"#).unwrap();
    assert_eq!(notes, ["the manifest names \"z\", which is not there"]);
    let needed =
        r#""files": [{"path": "z"}, {"path": "a", "clocks": {"clock": "BOOTTIME", "sync_to": {"file": "z"}}}]"#;
    assert!(read(files, needed).unwrap_err().contains("sync_to.file names \"z\", which is not there"));
    let two = read(&[("a", &a), ("n", br#"{"perfetto_manifest": {"version": 1}}"#)], "\"files\": []");
    assert!(two.unwrap_err().contains("several manifests"));
    let large = format!("\"later\": {:?}", "x".repeat(5 << 20));
    assert!(read(files, &large).unwrap_err().contains("more than 4194304 bytes"));
}
