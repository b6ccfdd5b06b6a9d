//! Archives and several files have the content that the trace processor finds in them.

use crate::{esatto, run, said, trace};
use esatto_inputs::Inputs;
use esatto_tests::{Harness, Peer, skip, tp};
use esatto_trace::tables::Table as _;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use zip::write::{SimpleFileOptions, ZipWriter};

const SLICES: &str = "select ts, dur, depth, coalesce(name, '') as name from slice order by ts, dur, depth, name";
const COUNTS: &str = "select (select count(*) from slice) as slices, (select count(*) from counter) as counters,
    (select count(*) from flow) as flows, (select count(*) from track) as tracks,
    (select count(*) from thread where tid != 0) as threads, (select count(*) from process where pid != 0) as processes,
    (select count(*) from machine) as machines";

fn zip_of(harness: &Harness, name: &str, files: &[(&str, Vec<u8>)]) -> PathBuf {
    let path = harness.path(name);
    let mut zip = ZipWriter::new(fs::File::create(&path).expect("a file"));
    for (name, bytes) in files {
        zip.start_file(*name, SimpleFileOptions::default()).expect("an entry");
        zip.write_all(bytes).expect("it is written");
    }
    zip.finish().expect("a list");
    path
}

fn tar_of(harness: &Harness, name: &str, files: &[(&str, Vec<u8>)]) -> PathBuf {
    let path = harness.path(name);
    let folder = harness.path(format!("{name}.files"));
    for (name, bytes) in files {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, bytes).expect("a file");
    }
    let names = files.iter().map(|(name, _)| name);
    let mut tar = std::process::Command::new("tar");
    // The older format, which all readers know.
    let status = tar.args(["--format=ustar", "-cf"]).arg(&path).arg("-C").arg(&folder).args(names).status();
    assert!(status.expect("tar runs").success());
    path
}

fn compare(archive: &Path) {
    let inputs = Inputs::open(&[archive.to_owned()]).expect("it opens");
    let (engine, summary) = inputs.read().expect("it is read");
    assert!(summary.errors.is_empty(), "{:?}", summary.errors);
    let rows = tp::query(archive, &format!("{SLICES}; {COUNTS};"));
    let (slice, strings) = (&engine.tables.slice, &engine.tables.strings);
    let name = |row: usize| slice.name[row].map_or("", |name| strings.get(name)).to_owned();
    let own = |row: usize| (slice.ts.get(row), slice.dur.get(row), i64::from(slice.depth[row]), name(row));
    let mut own: Vec<_> = (0..slice.rows()).map(own).collect();
    own.sort();
    let row = |row: &tp::Row| (row.int("ts"), row.int("dur"), row.int("depth"), row.text("name").to_owned());
    let mut theirs: Vec<_> = rows[0].iter().map(row).collect();
    theirs.sort();
    assert!(!own.is_empty() && own == theirs, "{} slices, {} of the trace processor", own.len(), theirs.len());
    let tables = &engine.tables;
    let named = |pids: &[i64]| pids.iter().filter(|pid| **pid != 0).count();
    let counts = [
        ("slices", slice.rows()),
        ("counters", tables.counter.rows()),
        ("flows", tables.flow.rows()),
        ("tracks", tables.track.rows()),
        ("threads", named(&tables.thread.tid)),
        ("processes", named(&tables.process.pid)),
        ("machines", tables.machine.rows()),
    ];
    for (what, count) in counts {
        assert_eq!(count as i64, rows[1][0].int(what), "{what} of {}", archive.display());
    }
}

fn real(name: &str) -> Vec<u8> {
    fs::read(trace(name)).expect("a trace")
}

#[test]
fn as_the_trace_processor_reads_them() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&real("process-and-sys-stats")).expect("it is written");
        let files = [
            ("x/long.pftrace", real("long-two-buffers")),
            ("a.pftrace", real("track-events")),
            ("m.gz", gzip.finish().expect("it ends")),
        ];
        compare(&zip_of(&harness, "all.zip", &files));
        // Version 52 crashes if the order of a tar archive is not that of reading.
        let [long, first, compressed] = files;
        compare(&tar_of(&harness, "all.tar", &[first, long, compressed]));
        Ok(())
    });
}

#[test]
fn the_same_trace_twice_is_two_traces_of_one_machine() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let files = [("a", real("track-events")), ("b", real("track-events"))];
        compare(&zip_of(&harness, "twice.zip", &files));
        Ok(())
    });
}

/// Events of Chrome JSON around the start of a trace.
fn json_of_chrome(start_ns: i64) -> Vec<u8> {
    let start = start_ns as f64 / 1e3;
    let events: Vec<Value> = (0..20)
        .map(|number| {
            let at = start + f64::from(number) * 1000.0;
            json!({ "ph": "X", "pid": 77, "tid": 78, "ts": at, "dur": 500, "name": format!("json {number}") })
        })
        .collect();
    serde_json::to_vec(&events).expect("JSON")
}

#[test]
fn chrome_json_beside_a_trace_has_its_place() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let start = tp::rows(&trace("track-events"), "select min(ts) as ts from slice")[0].int("ts");
        let archive =
            zip_of(&harness, "mixed.zip", &[("a.json", json_of_chrome(start)), ("b.pftrace", real("track-events"))]);
        let names = "select s.name, s.ts, s.dur, t.tid from slice s join thread_track tt on s.track_id = tt.id
            join thread t using (utid) where s.name glob 'json*' order by s.ts";
        let rows = tp::rows(&archive, names);
        let inputs = Inputs::open(&[archive]).expect("it opens");
        let (engine, _) = inputs.read().expect("it is read");
        let (slice, strings) = (&engine.tables.slice, &engine.tables.strings);
        let own: Vec<_> = (0..slice.rows())
            .map(|row| (slice.name[row].map_or("", |name| strings.get(name)), slice.ts.get(row), slice.dur.get(row)))
            .filter(|(name, ..)| name.starts_with("json"))
            .collect();
        let theirs: Vec<_> = rows.iter().map(|row| (row.text("name"), row.int("ts"), row.int("dur"))).collect();
        assert_eq!(own.len(), 20);
        assert_eq!(own, theirs);
        Ok(())
    });
}

#[test]
fn commands_take_archives_and_several_files() {
    let harness = Harness::new();
    let files =
        [("a.pftrace", real("track-events")), ("b.pftrace", real("long-two-buffers")), ("c.txt", b"x".to_vec())];
    let archive = zip_of(&harness, "all.zip", &files);
    let [a, b] = ["track-events", "long-two-buffers"].map(trace);
    let json = |args: &[&dyn AsRef<std::ffi::OsStr>]| -> Value {
        let output = esatto(args);
        assert!(output.status.success(), "{}", said(&output));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let of_archive = json(&[&"info", &"--json", &archive]);
    let of_files = json(&[&"info", &"--json", &a, &b]);
    assert_eq!(of_archive["slices"]["count"], 5506);
    for key in ["slices", "flows", "counter_values", "start_ns", "end_ns", "track_count", "processes"] {
        assert_eq!(of_archive[key], of_files[key], "{key}");
    }
    assert_eq!(of_archive["parts"][1]["name"], "b.pftrace");
    // Each trace is checked alone.
    let output = esatto(&[&"check", &archive]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    assert_eq!(text.matches("sound").count(), 2, "{text}");
    assert!(text.contains("all.zip: b.pftrace: sound. "), "{text}");
    assert!(said(&output).contains("c.txt is left out: it is no trace"), "{}", said(&output));
    // Their packets come one trace after the other.
    let output = esatto(&[&"dump", &"--type", &"trace_uuid", &archive]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("# a.pftrace\npacket {") && text.contains("\n# b.pftrace\npacket {"), "{text}");
    assert_eq!(text.matches("trace_uuid").count(), 2, "{text}");
    // One page, and one file of another format.
    let page = harness.path("page.html");
    assert!(run(&[&"report", &archive, &"-o", &page]).contains("5506 slices"));
    let folded = harness.path("all.folded");
    run(&[&"convert", &"--to", &"folded", &archive, &"-o", &folded]);
    let both = harness.path("both.folded");
    run(&[&"convert", &"--to", &"folded", &a, &b, &"-o", &both]);
    assert_eq!(fs::read(folded).expect("a file"), fs::read(both).expect("a file"));
}

#[test]
fn commands_that_change_one_trace_refuse_several() {
    let harness = Harness::new();
    let files = [("a.pftrace", real("track-events")), ("b.pftrace", real("long-two-buffers"))];
    let archive = zip_of(&harness, "all.zip", &files);
    let out = harness.path("out");
    let refused = |args: &[&dyn AsRef<std::ffi::OsStr>], why: &str| {
        let output = esatto(args);
        assert_eq!(output.status.code(), Some(1));
        assert!(said(&output).contains(why), "{}", said(&output));
        assert!(!out.exists());
    };
    refused(&[&"cut", &"--from", &"+1s", &archive, &"-o", &out], "it is 2 traces");
    refused(&[&"redact", &"--drop-args", &archive, &"-o", &out], "it is 2 traces");
    refused(&[&"convert", &"--to", &"perfetto", &archive, &"-o", &out], "`esatto merge` makes one trace");
    refused(&[&"info", &archive, &trace("track-events")], "an archive is read alone");
    refused(&[&"view", &"--no-open", &trace("track-events"), &trace("deflate")], "`esatto merge -o all.zip FILE...`");
    // An archive of one trace is that trace.
    let single = zip_of(&harness, "one.zip", &files[..1]);
    run(&[&"cut", &"--from", &"+100ms", &single, &"-o", &out]);
}

#[test]
fn pieces_of_a_trace_are_one() {
    let harness = Harness::new();
    let whole = real("long-two-buffers");
    let (first, second) = whole.split_at(whole.len() / 3);
    let paths = [harness.write("1", first), harness.write("2", second)];
    let summary = |args: &[&dyn AsRef<std::ffi::OsStr>]| {
        let output = esatto(args);
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let of_pieces = summary(&[&"info", &"--pieces", &paths[0], &paths[1]]);
    assert_eq!(of_pieces, summary(&[&"info", &trace("long-two-buffers")]));
}

#[test]
fn chrome_json_is_read_by_all_commands() {
    let harness = Harness::new();
    let mut events: Vec<Value> = serde_json::from_slice(&json_of_chrome(1_000_000)).expect("JSON");
    events.push(json!({ "ph": "Z", "pid": 1, "tid": 1, "ts": 1 }));
    let text = serde_json::to_vec(&events).expect("JSON");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&text).expect("it is written");
    let files = [harness.write("t.json", &text), harness.write("t.json.gz", gzip.finish().expect("it ends"))];
    for file in &files {
        let output = esatto(&[&"info", &"--json", file]);
        assert!(output.status.success(), "{}", said(&output));
        let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(summary["slices"]["count"], 20);
        let lost = "1 events of the phase 'Z' have no meaning";
        assert!(said(&output).contains(lost), "{}", said(&output));
        let output = esatto(&[&"check", file]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains("sound") && text.contains(lost), "{text}");
        let output = esatto(&[&"dump", file]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("\"json 7\"") && said(&output).contains(lost), "{text}");
        let page = harness.path("page.html");
        assert!(run(&[&"report", file, &"-o", &page]).contains("20 slices"));
        assert!(fs::read_to_string(page).expect("a page").contains(lost));
    }
}

#[test]
fn a_damaged_trace_in_an_archive_is_told() {
    let harness = Harness::new();
    let whole = fs::read(trace("track-events")).expect("a trace");
    for (number, place) in [10, 500, 3000, 20_000].into_iter().enumerate() {
        let mut damaged = whole.clone();
        damaged[place..place + 64].fill(0);
        let files = [("x.pftrace", damaged), ("y.pftrace", whole.clone())];
        for archive in
            [zip_of(&harness, &format!("{number}.zip"), &files), tar_of(&harness, &format!("{number}.tar"), &files)]
        {
            let output = esatto(&[&"check", &archive]);
            let told = String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(1), "{place}: {told}{}", said(&output));
            assert!(told.contains("x.pftrace: damaged") && told.contains("y.pftrace: sound"), "{place}: {told}");
            let json = harness.path("out.json");
            let output = esatto(&[&"convert", &archive, &"--to", &"chrome-json", &"--force", &"-o", &json]);
            assert_eq!(output.status.code(), Some(3), "{place}: {}", said(&output));
            assert!(!said(&output).contains("nothing after it"), "the other trace is there: {}", said(&output));
        }
    }
}
