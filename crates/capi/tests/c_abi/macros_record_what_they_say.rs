//! `esatto/trace.h` and `esatto/trace.hpp`; what does not need a trace the programs check themselves.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use esatto_tests::Peer;
use esatto_tests::{skip, tp};

use crate::build::{compile, file, succeed};

/// The programs of `tests/c/macros.*`, and what they have recorded: track events, packets.
static TRACES: LazyLock<[(PathBuf, PathBuf); 2]> = LazyLock::new(|| {
    [("gcc", "macros.c", "-std=c11"), ("g++", "macros.cc", "-std=c++17")].map(|(compiler, source, standard)| {
        let program = file(&source.replace('.', "_"));
        compile(compiler, source, &program, &[WARNINGS, &[standard, "-O2", "-lperfetto_c", "-lpthread"]].concat());
        let traces = (program.with_extension("events.pftrace"), program.with_extension("packets.pftrace"));
        succeed(Command::new(program).arg(&traces.0).arg(&traces.1));
        traces
    })
});

const WARNINGS: &[&str] = &["-Wpedantic", "-Wshadow"];

fn texts(trace: &PathBuf, sql: &str) -> Vec<String> {
    tp::rows(trace, sql).iter().map(|row| row.text("x").to_owned()).collect()
}

/// Runs a check on the track events of both programs.
fn events(check: impl Fn(&PathBuf)) {
    LazyLock::force(&TRACES);
    skip(|| {
        Peer::TraceProcessor.require()?;
        TRACES.iter().for_each(|(events, _)| check(events));
        Ok(())
    });
}

#[test]
fn without_a_warning_by_either_standard_and_for_either_library() {
    for flavour in ["-DPERFETTO_C_V58", "-DPERFETTO_C_V59"] {
        for standard in ["-std=c11", "-std=c17"] {
            compile("gcc", "macros.c", &file("macros.o"), &[WARNINGS, &[standard, flavour, "-c"]].concat());
        }
        for standard in ["-std=c++17", "-std=c++20"] {
            compile("g++", "macros.cc", &file("macros_cc.o"), &[WARNINGS, &[standard, flavour, "-c"]].concat());
        }
    }
}

#[test]
fn slices_end_however_they_are_left_and_on_their_track() {
    events(|trace| {
        let tracks = "SELECT s.name || ': ' || t.name AS x FROM slice s JOIN track t ON t.id = s.track_id \
                      WHERE t.name IS NOT NULL ORDER BY x";
        let of_c = ["on a nested track: inner"; 1];
        let expected = [
            "1.5 ms: past",
            "below the thread: below the thread",
            "below the worker: below",
            of_c[0],
            "of no process: global",
            "on a named track: named",
            "on a track: worker",
        ];
        let found: Vec<_> = texts(trace, tracks).into_iter().filter(|x| !x.contains("moved")).collect();
        assert_eq!(found, expected);
        let left = "SELECT count(*) AS n FROM slice WHERE dur < 0 OR (name IN ('in a loop', 'leaves early') AND depth = 0)";
        assert_eq!(tp::rows(trace, left)[0].int("n"), 0);
        let depths = texts(trace, "SELECT DISTINCT name || depth AS x FROM slice WHERE depth > 0 ORDER BY x");
        assert_eq!(depths, ["in a loop2", "leaves early1"]);
        assert_eq!(tp::rows(trace, "SELECT dur FROM slice WHERE name = '1.5 ms'")[0].int("dur"), 1_500_000);
        let process = "SELECT count(*) AS n FROM slice JOIN process_track t ON t.id = track_id \
                       WHERE slice.name = 'on the process'";
        assert_eq!(tp::rows(trace, process)[0].int("n"), 1);
    });
}

#[test]
fn what_is_not_recorded_is_not_there() {
    events(|trace| {
        assert_eq!(texts(trace, "SELECT DISTINCT category AS x FROM slice ORDER BY x"), ["net", "plain"]);
        let wrong = "SELECT name AS x FROM slice WHERE name IN ('name', 'must not be there')";
        assert_eq!(texts(trace, wrong), [""; 0]);
        assert_eq!(texts(trace, "SELECT category AS x FROM slice WHERE name = 'of a dynamic category'"), ["plain"]);
        let dynamic = texts(trace, "SELECT name AS x FROM slice WHERE name GLOB 'dynamic *'");
        assert_eq!(dynamic, ["dynamic 0", "dynamic 1", "dynamic 2"]);
    });
}

#[test]
fn annotations_have_the_types_of_their_values() {
    events(|trace| {
        let all = "SELECT key || '=' || value_type || ' ' || display_value AS x FROM args JOIN slice USING (arg_set_id) \
                   WHERE slice.name = 'annotated' ORDER BY args.id";
        let all: Vec<_> = texts(trace, all).into_iter().map(|x| x.replace("debug.", "")).collect();
        let expected = [
            "bool=bool true",
            "char=int 99",
            "short=int -2",
            "int=int -3",
            "long=int -4",
            "long long=int -9223372036854775808",
            "byte=uint 200",
            "unsigned=uint 5",
            "u64=uint 1099511627776",
            "float=real 0.25",
            "double=real 2.5",
            "text=string text",
            "literal=string literal",
            "array=string array",
            "pointer=pointer 0x10",
            "null=string ",
        ];
        assert_eq!(all[..expected.len()], expected);
        let typed = "SELECT key || '=' || display_value AS x FROM args JOIN slice USING (arg_set_id) \
                     WHERE slice.name = 'typed' ORDER BY x";
        let expected = [
            "debug.bytes=a b",
            "debug.interned=0.5",
            "source_location.file_name=file.c",
            "source_location.line_number=17",
        ];
        assert_eq!(texts(trace, typed), expected);
    });
}

#[test]
fn counters_flows_and_numbers_of_what_belongs_together() {
    events(|trace| {
        let counters = "SELECT t.name || ' ' || value || ' ' || ifnull(unit, '') AS x FROM counter c \
                        JOIN counter_track t ON t.id = c.track_id ORDER BY c.ts";
        let expected = ["heat 20.0 C", "heat 20.5 C", "packets 3.0 ", "packets -4.0 ", "load 0.75 "];
        assert_eq!(texts(trace, counters), expected);
        let flows = "SELECT i.name || ' -> ' || o.name AS x FROM flow JOIN slice i ON i.id = slice_out \
                     JOIN slice o ON o.id = slice_in";
        // The fixed64 field of 'typed' begins a flow that goes nowhere.
        assert_eq!(texts(trace, flows), ["starts -> ends", "starts -> ends"]);
        let numbers = "SELECT display_value AS x FROM args WHERE key = 'correlation_id' ORDER BY x";
        assert_eq!(texts(trace, numbers), ["eleven", "tp:#11"]);
    });
}

/// The trace processor has not heard of state tracks; of fields that it does not know, there are a fixed32 and a float.
#[test]
fn nothing_is_wrong_with_events() {
    events(|trace| {
        let wrong = "SELECT name || value AS x FROM stats WHERE value <> 0 AND severity IN ('error', 'data_loss')";
        assert_eq!(texts(trace, wrong), ["unknown_extension_fields2"]);
    });
}

/// Decoded by hand, as fields for tests are nothing to the trace processor.
#[test]
fn packets_are_whole_and_in_order() {
    let count = |trace: &[u8], what: &str| trace.windows(what.len()).filter(|bytes| *bytes == what.as_bytes()).count();
    let [c, cxx] = &*TRACES;
    let trace = std::fs::read(&c.1).expect("it was recorded");
    assert_eq!((count(&trace, "small"), count(&trace, "large"), count(&trace, "nobody")), (3, 1, 0));
    let trace = std::fs::read(&cxx.1).expect("it was recorded");
    let texts = ["first", "second", "while stopping", "silent", "nobody"];
    assert_eq!(texts.map(|text| count(&trace, text)), [1, 1, 1, 1, 0]);
    skip(|| {
        Peer::TraceProcessor.require()?;
        TRACES.iter().for_each(|(_, packets)| tp::assert_clean(packets));
        Ok(())
    });
}
