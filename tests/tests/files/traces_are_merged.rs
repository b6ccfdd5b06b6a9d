//! A merged trace has what the trace processor finds in its parts.

use crate::{esatto, run, said, trace};
use esatto_tests::wire::Proto;
use esatto_tests::{Harness, Implementation, Instance, Peer, skip, tp};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sums over all of a trace.
const SUMS: &str = "select (select count(*) from slice) as slices, (select sum(dur) from slice) as time,
    (select count(*) from counter) as counters, (select count(*) from flow) as flows";

#[test]
fn as_the_sum_of_its_parts() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let merged = harness.path("t.pftrace");
        let parts = ["long-two-buffers", "track-events", "process-and-sys-stats"].map(trace);
        run(&[&"merge", &parts[0], &parts[1], &parts[2], &"-o", &merged]);
        let sums = |file: &Path| {
            let row = &tp::rows(file, SUMS)[0];
            let time = if row.is_null("time") { 0 } else { row.int("time") };
            [row.int("slices"), time, row.int("counters"), row.int("flows")]
        };
        let mut expected = [0; 4];
        for part in &parts {
            expected.iter_mut().zip(sums(part)).for_each(|(sum, value)| *sum += value);
        }
        assert!(expected.iter().all(|sum| *sum > 1000), "{expected:?}");
        assert_eq!(sums(&merged), expected);
        tp::assert_clean(&merged);
        assert_sound(&merged);
        Ok(())
    });
}

fn assert_sound(file: &Path) {
    let output = esatto(&[&"check", &file]);
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), said(&output));
}

#[test]
fn a_missing_end_is_still_told() {
    let harness = Harness::new();
    let mut whole = std::fs::read(trace("long-two-buffers")).expect("a trace");
    // Cuts the last packets off, at the end of a packet.
    let packets = esatto_trace::PacketReader::new(&whole[..]).map(|packet| packet.expect("a packet"));
    let starts: Vec<u64> = packets.map(|packet| packet.place.offset).collect();
    whole.truncate(usize::try_from(starts[starts.len() * 3 / 4]).expect("a position"));
    let cut_off = harness.write("cut-off", &whole);
    assert_eq!(esatto(&[&"check", &cut_off]).status.code(), Some(3), "its end is missing");
    let merged = harness.path("merged");
    run(&[&"merge", &cut_off, &trace("track-events"), &"-o", &merged]);
    let output = esatto(&[&"check", &merged]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(3) && told.contains("end missing"), "{told}");
}

/// Snapshots of the clocks of the host and of another machine, and an event of that machine.
fn relayed(first: u64) -> Vec<u8> {
    let reading = |id: u64, ns: u64| Proto::new().int(1, id).int(2, ns);
    let snapshot = |ns: u64| Proto::new().message(1, &reading(6, ns)).message(1, &reading(3, ns - 5));
    let mut trace = Proto::new();
    for ns in [first, first + 1000] {
        trace = trace.message(1, &Proto::new().int(10, 1).message(6, &snapshot(ns)));
        let of_other = Proto::new().int(10, 2).int(98, 7).message(6, &snapshot(ns + 500_000));
        trace = trace.message(1, &of_other);
        let event = Proto::new().int(9, 3).bytes(23, "tick");
        trace = trace.message(1, &Proto::new().int(8, ns + 500_100).int(10, 3).int(98, 7).message(11, &event));
    }
    trace.0
}

#[test]
fn snapshots_of_other_machines_come_in_order() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let (first, second) = (harness.write("first", relayed(10_000)), harness.write("second", relayed(50_000)));
        let merged = harness.path("t.pftrace");
        run(&[&"merge", &second, &first, &"-o", &merged]);
        let sql = "select name, value from stats where severity != 'info' and value != 0";
        let errors = tp::rows(&merged, sql);
        assert!(errors.is_empty(), "{errors:?}");
        let row = &tp::rows(&merged, "select count(*) as snapshots from clock_snapshot where clock_id = 6")[0];
        assert_eq!(row.int("snapshots"), 8);
        Ok(())
    });
}

#[test]
fn traces_of_another_boot_are_refused() {
    let harness = Harness::new();
    let reading = |id: u64, ns: u64| Proto::new().int(1, id).int(2, ns);
    let booted = |wall: u64| {
        let snapshot = Proto::new().message(1, &reading(6, 1_000)).message(1, &reading(1, wall));
        Proto::new().message(1, &Proto::new().int(10, 1).message(6, &snapshot)).0
    };
    let first = harness.write("first", booted(1_700_000_000_000_000_000));
    let second = harness.write("second", booted(1_700_009_000_000_000_000));
    let output = esatto(&[&"merge", &first, &second, &"-o", &harness.path("t")]);
    assert!(!output.status.success() && !harness.path("t").exists());
    assert!(said(&output).contains("another machine, or of another boot"), "{}", said(&output));
}

/// Counts of what the kernel did.
const KERNEL: &str = "select (select total(value) from stats where name like 'sorter_push%') as misplaced,
    (select count(*) from ftrace_event) as events, (select count(*) from sched) as switches";

fn kernel(file: &Path) -> [i64; 2] {
    let row = &tp::rows(file, KERNEL)[0];
    assert_eq!(row.real("misplaced"), 0.0, "{}", file.display());
    [row.int("events"), row.int("switches")]
}

/// Records the scheduler for a moment, into a file that the service writes piece by piece.
fn record_switches(harness: &Harness, instance: &Instance, name: &str) -> PathBuf {
    let config = format!(
        r#"buffers {{ size_kb: 16384 fill_policy: DISCARD }}
        write_into_file: true file_write_period_ms: 100 flush_period_ms: 100
        data_sources {{ config {{ name: "linux.ftrace" ftrace_config {{ instance_name: "{}"
          ftrace_events: "sched/sched_switch" ftrace_events: "sched/sched_waking" }} }} }}"#,
        instance.name()
    );
    let mut recording = harness.record(Implementation::Theirs, name, &config);
    instance.wait_until_on("sched/sched_waking");
    let status = Command::new("sh").args(["-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.1; done"]).status();
    assert!(status.expect("sh is there").success());
    recording.stop()
}

/// Checks that a merged trace has what its parts have, in whatever order.
fn have_all_of_the_kernel(harness: &Harness, parts: [&Path; 2]) {
    let expected = parts.map(kernel);
    for (number, order) in [parts, [parts[1], parts[0]]].into_iter().enumerate() {
        let merged = harness.path(format!("merged-{number}"));
        run(&[&"merge", &order[0], &order[1], &"--force", &"-o", &merged]);
        let [events, switches] = kernel(&merged);
        assert_sound(&merged);
        // The first event of a processor has no predecessor in a part of its own, and is left out.
        for (found, index) in [(events, 0), (switches, 1)] {
            let sum = expected[0][index] + expected[1][index];
            assert!((sum..=sum + 64).contains(&found), "{found} of {sum}, {order:?}");
        }
        assert!(expected.iter().all(|part| part[0] > 100 && part[1] > 70), "{expected:?}");
    }
}

#[test]
fn recordings_of_the_kernel_in_any_order() {
    skip(|| {
        [Peer::Official, Peer::TraceProcessor].into_iter().try_for_each(Peer::require)?;
        esatto_tests::mount_tracefs()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Theirs);
        let _probes = harness.probes(Implementation::Theirs);
        let instance = Instance::new("merged");
        let [first, second] = ["first", "second"].map(|name| record_switches(&harness, &instance, name));
        have_all_of_the_kernel(&harness, [&first, &second]);
        // Parts of one recording.
        let middle = "+0.5s";
        let (before, after) = (harness.path("before"), harness.path("after"));
        run(&[&"cut", &first, &"--to", &middle, &"-o", &before]);
        run(&[&"cut", &first, &"--from", &middle, &"-o", &after]);
        have_all_of_the_kernel(&harness, [&before, &after]);
        Ok(())
    });
}

/// A recording in which two threads take turns on a processor, every millisecond for a second.
fn turns(first: u64) -> Vec<u8> {
    let thread = |at: u64| (at % 2 + 1, format!("turn-{}", at % 2));
    let mut bundle = Proto::new().int(1, 0);
    for at in 0..=1000 {
        let ((from, from_name), (to, to_name)) = (thread(at), thread(at + 1));
        let before = Proto::new().bytes(1, from_name).int(2, from).int(3, 120).int(4, 0);
        let switch = before.bytes(5, to_name).int(6, to).int(7, 120);
        bundle = bundle.message(2, &Proto::new().int(1, first + at * 1_000_000).int(2, from).message(4, &switch));
    }
    Proto::new().message(1, &Proto::new().int(10, 2).message(1, &bundle)).0
}

#[test]
fn a_time_between_recordings_of_the_kernel_is_told() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        const SECOND: u64 = 1_000_000_000;
        let at = |seconds: u64| harness.write(&format!("at-{seconds}"), turns(seconds * SECOND));
        let (early, next, late) = (at(10), at(11), at(20));
        let merge = |parts: [&Path; 2]| {
            let merged = harness.path("merged");
            let output = esatto(&[&"merge", &parts[0], &parts[1], &"--force", &"-o", &merged]);
            assert!(output.status.success(), "{}", said(&output));
            let checked = esatto(&[&"check", &merged]);
            assert!(checked.status.success(), "nothing was lost");
            (said(&output), String::from_utf8_lossy(&checked.stdout).into_owned(), merged)
        };
        // A part follows another one at once: nothing is told.
        let (told, checked, merged) = merge([&next, &early]);
        assert!(!told.contains("kernel events") && checked.lines().count() == 1, "{told}{checked}");
        assert_eq!(info(&merged)["scheduling_gap_ns"], serde_json::Value::Null);
        // The trace processor and we let a thread run from one recording to the other.
        for parts in [[&*early, &*late], [&*late, &*early]] {
            let (told, checked, merged) = merge(parts);
            assert!(told.contains("Up to 9.000 s between the recordings have no kernel events"), "{told}");
            assert!(checked.contains("no thread was switched for 9.000 s, from 1.000 s after the begin"), "{checked}");
            assert_eq!(info(&merged)["scheduling_gap_ns"], serde_json::json!([11 * SECOND, 20 * SECOND]));
            let longest = "select max(dur) as longest from thread_state where state = 'Running'";
            assert_eq!(tp::rows(&merged, longest)[0].int("longest"), 9_000_000_000);
        }
        Ok(())
    });
}

#[test]
fn losses_of_all_parts_are_told() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let losses = |file: &Path| -> Vec<(i64, i64)> {
            let sql = "select idx, value from stats where name = 'traced_buf_chunks_overwritten' order by 1";
            tp::rows(file, sql).iter().map(|row| (row.int("idx"), row.int("value"))).collect()
        };
        let parts = ["ring-buffer-wrapped", "track-events"].map(trace);
        let expected = losses(&parts[0])[0].1;
        assert!(expected > 0);
        let merged = harness.path("t.pftrace");
        run(&[&"merge", &parts[0], &parts[1], &"-o", &merged]);
        assert_eq!(losses(&merged)[0], (0, expected), "the first part has lost chunks");
        assert_eq!(losses(&merged).len(), losses(&parts[0]).len() + losses(&parts[1]).len(), "all buffers are there");
        Ok(())
    });
}

/// A trace of a machine that booted at this moment: with an instant after 4 seconds.
fn booted(wall: u64, name: &str) -> Vec<u8> {
    let reading = |id: u64, ns: u64| Proto::new().int(1, id).int(2, ns);
    let snapshot = Proto::new().message(1, &reading(6, 1_000)).message(1, &reading(1, wall + 1_000));
    let event = Proto::new().int(9, 3).bytes(23, name.as_bytes());
    let trace = Proto::new().message(1, &Proto::new().int(10, 1).message(6, &snapshot));
    trace.message(1, &Proto::new().int(8, 4_000_000_000).int(10, 2).message(11, &event)).0
}

#[test]
fn traces_of_several_machines_are_an_archive() {
    const WALL: u64 = 1_700_000_000_000_000_000;
    let harness = Harness::new();
    let phone = harness.write("phone.pftrace", booted(WALL, "on the phone"));
    let watch = harness.write("watch.pftrace", booted(WALL + 100_000_000_000, "on the watch"));
    for name in ["all.zip", "all.tar", "all.tar.gz"] {
        let archive = harness.path(name);
        let said = run(&[&"merge", &phone, &watch, &"-o", &archive]);
        assert!(said.contains("2 traces of 2 machines, and a manifest"), "{said}");
        let summary = info(&archive);
        let machines = summary["machines"].as_array().expect("a list");
        let machines: Vec<_> = machines.iter().map(|machine| machine["name"].as_str()).collect();
        assert_eq!(machines, [Some("phone"), Some("watch")]);
        // They meet at the time of day.
        assert_eq!([&summary["start_ns"], &summary["end_ns"]], [4_000_000_000_u64, 104_000_000_000]);
        let output = esatto(&[&"check", &archive]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    // One machine has one clock.
    let archive = harness.path("same.zip");
    let said = run(&[&"merge", &phone, &watch, &"--machines", &"both,both", &"-o", &archive]);
    assert!(said.contains("2 traces of one machine"), "{said}");
    let summary = info(&archive);
    assert_eq!([&summary["start_ns"], &summary["end_ns"]], [4_000_000_000_u64, 4_000_000_001]);
    let said = said_of_failure(&[&"merge", &phone, &watch, &"--machines", &"one", &"-o", &harness.path("x.zip")]);
    assert!(said.contains("1 names for 2 files"), "{said}");
    let said = said_of_failure(&[&"merge", &phone, &watch, &"-o", &harness.path("x")]);
    assert!(said.contains("`-o all.zip` writes an archive"), "{said}");
}

fn info(trace: &Path) -> serde_json::Value {
    let output = esatto(&[&"info", &"--json", &trace]);
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn said_of_failure(args: &[&dyn AsRef<std::ffi::OsStr>]) -> String {
    let output = esatto(args);
    assert_eq!(output.status.code(), Some(1));
    said(&output)
}

#[test]
fn the_trace_processor_reads_the_archive() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let parts = ["track-events", "long-two-buffers"].map(trace);
        let archive = harness.path("all.zip");
        run(&[&"merge", &parts[0], &parts[1], &"-o", &archive]);
        // Version 52 does not know manifests: it is JSON without events for it.
        let without = harness.path("without.zip");
        let mut zip = zip::ZipArchive::new(std::fs::File::open(&archive).expect("it is there")).expect("an archive");
        let mut out = zip::ZipWriter::new(std::fs::File::create(&without).expect("a file"));
        assert_eq!(zip.file_names().count(), 3);
        for index in 0..zip.len() {
            let entry = zip.by_index_raw(index).expect("an entry");
            if entry.name() != "perfetto_manifest.json" {
                out.raw_copy_file(entry).expect("it is copied");
            }
        }
        out.finish().expect("a list");
        let slices = |file: &Path| tp::rows(file, SUMS)[0].int("slices");
        assert_eq!(slices(&without), slices(&parts[0]) + slices(&parts[1]));
        Ok(())
    });
}

#[test]
fn a_trace_twice_is_refused_or_told() {
    let harness = Harness::new();
    let name = |name: &str| harness.path(name);
    let one = name("one");
    std::fs::copy(trace("track-events"), &one).expect("a copy");
    std::os::unix::fs::symlink(&one, name("link")).expect("a link");
    for other in [one.clone(), name("link")] {
        let said = said_of_failure(&[&"merge", &one, &other, &"-o", &name("t")]);
        assert!(said.contains("it is the same file as") && !name("t").exists(), "{said}");
    }
    let said = run(&[&"merge", &one, &trace("track-events"), &"-o", &name("t")]);
    assert!(said.contains("events that both have are in the result twice"), "{said}");
}
