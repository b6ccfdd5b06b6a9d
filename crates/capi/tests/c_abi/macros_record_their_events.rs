//! The macros of `esatto/trace.h` and `esatto/trace.hpp`. The programs check everything that needs
//! no trace.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use esatto_protozero::Fields;
use esatto_tests::Peer;
use esatto_tests::{Skip, skip, tp};

use crate::abi_version::{AbiVersion, succeed};
use crate::build::{compile, file_in_tmp};
use crate::test_events::test_events;

/// The traces of the programs `tests/c/macros.*`: track events, packets.
static TRACES: LazyLock<[(PathBuf, PathBuf); 2]> = LazyLock::new(|| run(AbiVersion::V58));

fn run(version: AbiVersion) -> [(PathBuf, PathBuf); 2] {
    [("gcc", "macros.c", "-std=c11"), ("g++", "macros.cc", "-std=c++17")].map(|(compiler, source, standard)| {
        let program = file_in_tmp(&format!("{}-{version:?}", source.replace('.', "_")));
        let options = [WARNINGS, &[standard, "-O2", "-lperfetto_c", "-lpthread"]].concat();
        compile(compiler, version, source, &program, &options);
        let traces = (program.with_extension("events.pftrace"), program.with_extension("packets.pftrace"));
        succeed(Command::new(program).arg(&traces.0).arg(&traces.1));
        traces
    })
}

const WARNINGS: &[&str] = &["-Wpedantic", "-Wshadow"];

/// Queries the track events of both programs with statements that have a column `x`, and checks the
/// answers.
fn ask<const N: usize>(questions: [&str; N], check: impl Fn([Vec<String>; N])) {
    LazyLock::force(&TRACES);
    skip(|| {
        Peer::TraceProcessor.require()?;
        for (events, _) in &*TRACES {
            let rows = tp::query(events, &questions.join(";\n"));
            let mut answers = rows.iter().map(|rows| rows.iter().map(|row| row.text("x").to_owned()).collect());
            check(std::array::from_fn(|_| answers.next().expect("an answer to each question")));
        }
        Ok(())
    });
}

#[test]
fn they_compile_without_warnings_for_all_standards_and_versions() {
    for version in AbiVersion::ALL {
        for standard in ["-std=c11", "-std=c17"] {
            let options = [WARNINGS, &[standard, "-c"]].concat();
            compile("gcc", version, "macros.c", &file_in_tmp("macros.o"), &options);
        }
        for standard in ["-std=c++17", "-std=c++20"] {
            let options = [WARNINGS, &[standard, "-c"]].concat();
            compile("g++", version, "macros.cc", &file_in_tmp("macros_cc.o"), &options);
        }
    }
}

/// The checks of the programs hold with this library.
#[test]
fn they_work_with_the_library_of_v59() {
    run(AbiVersion::V59);
}

#[test]
fn they_compile_without_warnings_by_clang() {
    skip(|| {
        for version in AbiVersion::ALL {
            for (compiler, source, standard) in [
                ("clang", "macros.c", "-std=c11"),
                ("clang++", "macros.cc", "-std=c++17"),
                ("clang++", "macros.cc", "-std=c++20"),
            ] {
                let is_there = Command::new(compiler).arg("--version").output().is_ok();
                is_there.then_some(()).ok_or_else(|| Skip(format!("no clang: {compiler} does not start")))?;
                compile(compiler, version, source, &file_in_tmp("clang.o"), &[WARNINGS, &[standard, "-c"]].concat());
            }
        }
        Ok(())
    });
}

#[test]
fn slices_end_with_their_block_and_on_their_track() {
    let tracks = "SELECT s.name || ': ' || t.name AS x FROM slice s JOIN track t ON t.id = s.track_id \
                  WHERE t.name IS NOT NULL AND s.name NOT LIKE '%moved%' ORDER BY x";
    let open = "SELECT name AS x FROM slice WHERE dur < 0";
    let depths = "SELECT DISTINCT name || depth AS x FROM slice WHERE name IN ('in a loop', 'leaves early') ORDER BY x";
    let past = "SELECT CAST(dur AS TEXT) AS x FROM slice WHERE name = '1.5 ms'";
    let process =
        "SELECT s.name AS x FROM slice s JOIN process_track t ON t.id = track_id WHERE s.name = 'on the process'";
    let inside = "SELECT name || ': ' || depth AS x FROM slice WHERE name GLOB 'inside *' OR name = 'slice of a dynamic category' ORDER BY x";
    ask([tracks, open, depths, past, process, inside], |[tracks, open, depths, past, process, inside]| {
        assert_eq!(inside, ["inside 1: 1", "inside 2: 2", "slice of a dynamic category: 1"]);
        let expected = [
            "1.5 ms: past",
            "below the thread: below the thread",
            "below the worker: below",
            "of no process: global",
            "on a named track: named",
            "on a nested track: inner",
            "on a track: worker",
        ];
        assert_eq!(tracks, expected);
        assert_eq!(open, [""; 0]);
        assert_eq!(depths, ["in a loop2", "leaves early1"]);
        assert_eq!((past, process), (vec!["1500000".to_owned()], vec!["on the process".to_owned()]));
    });
}

#[test]
fn disabled_events_are_not_in_the_trace() {
    let categories = "SELECT DISTINCT category AS x FROM slice ORDER BY x";
    let wrong = "SELECT name AS x FROM slice WHERE name IN ('name', 'must not be there')";
    let category = "SELECT category AS x FROM slice WHERE name = 'of a dynamic category'";
    let names = "SELECT name AS x FROM slice WHERE name GLOB 'dynamic *'";
    ask([categories, wrong, category, names], |[categories, wrong, category, names]| {
        assert_eq!(categories, ["net", "plain"]);
        assert_eq!(wrong, [""; 0]);
        assert_eq!(category, ["plain"]);
        assert_eq!(names, ["dynamic 0", "dynamic 1", "dynamic 2"]);
    });
}

#[test]
fn annotations_have_the_types_of_their_values() {
    let all = "SELECT substr(key, 7) || '=' || value_type || ' ' || display_value AS x FROM args \
               JOIN slice USING (arg_set_id) WHERE slice.name = 'annotated' ORDER BY args.id";
    let typed = "SELECT key || '=' || display_value AS x FROM args JOIN slice USING (arg_set_id) \
                 WHERE slice.name = 'typed' ORDER BY x";
    ask([all, typed], |[all, typed]| {
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
        let expected = [
            "debug.bytes=a b",
            "debug.interned=0.5",
            "source_location.file_name=file.c",
            "source_location.line_number=17",
        ];
        assert_eq!(typed, expected);
    });
}

#[test]
fn counters_flows_and_correlation_ids_are_recorded() {
    let counters = "SELECT t.name || ' ' || value || ' ' || ifnull(unit, '') AS x FROM counter c \
                    JOIN counter_track t ON t.id = c.track_id WHERE t.name <> 'types' ORDER BY c.ts";
    let flows = "SELECT i.name || ' -> ' || o.name AS x FROM flow JOIN slice i ON i.id = slice_out \
                 JOIN slice o ON o.id = slice_in";
    let numbers = "SELECT display_value AS x FROM args WHERE key = 'correlation_id' ORDER BY x";
    ask([counters, flows, numbers], |[counters, flows, numbers]| {
        assert_eq!(
            counters,
            ["heat 20.0 C", "heat 20.5 C", "packets 3.0 ", "packets -4.0 ", "load 0.75 ", "load 0.5 "]
        );
        // The fixed64 field of 'typed' begins a flow that has no end.
        assert_eq!(flows, ["starts -> ends", "starts -> ends"]);
        assert_eq!(numbers, ["eleven", "tp:#11"]);
    });
}

/// Integers are counts in the trace, and all others measures.
#[test]
fn counters_in_c_take_all_types_of_numbers() {
    const TRACK_EVENT: u32 = 11;
    let trace = std::fs::read(&TRACES[0].0).expect("it was recorded");
    let mut descriptors = Fields::new(&trace).filter_map(|packet| Fields::new(packet.as_bytes()).first(60));
    let is_types = |descriptor: &[u8]| Fields::new(descriptor).first(2).is_some_and(|name| name.as_bytes() == b"types");
    let types = descriptors.find(|descriptor| is_types(descriptor.as_bytes())).expect("a track of this name");
    let types = Fields::new(types.as_bytes()).first(1).expect("a number").as_u64();
    let (mut counts, mut measures) = (Vec::new(), Vec::new());
    let events = Fields::new(&trace).filter_map(|packet| Fields::new(packet.as_bytes()).first(TRACK_EVENT));
    for event in events.map(|event| Fields::new(event.as_bytes())) {
        if event.clone().first(11).is_some_and(|track| track.as_u64() == types) {
            counts.extend(event.clone().first(30).map(|value| value.as_i64()));
            measures.extend(event.clone().first(44).map(|value| value.as_f64()));
        }
    }
    assert_eq!(measures, [1.25, 1.5, 1.75]);
    assert_eq!(counts, [5, 1, -7, 3, 97, 1, 1 << 40]);
}

/// The trace processor does not know two of the fields: a fixed32 and a float.
#[test]
fn the_trace_processor_reports_no_error_but_unknown_fields() {
    let wrong = "SELECT name || value AS x FROM stats WHERE value <> 0 AND severity IN ('error', 'data_loss')";
    ask([wrong], |[wrong]| assert_eq!(wrong, ["unknown_extension_fields2"]));
}

/// The test decodes them, because the trace processor does not know them.
#[test]
fn states_are_events_on_tracks_of_states() {
    const TRACK_EVENT: u32 = 11;
    const TRACK_DESCRIPTOR: u32 = 60;
    for (trace, _) in &*TRACES {
        let trace = std::fs::read(trace).expect("it was recorded");
        // Numbers of tracks with their names, and events of this type.
        let (mut tracks, mut events) = (Vec::new(), Vec::new());
        for packet in Fields::new(&trace) {
            let packet = Fields::new(packet.as_bytes());
            if let Some(descriptor) = packet.first(TRACK_DESCRIPTOR).map(|field| Fields::new(field.as_bytes())) {
                if descriptor.first(18).is_some() {
                    let name = descriptor.first(2).expect("a name").as_str().expect("text").to_owned();
                    tracks.push((descriptor.first(1).expect("a number").as_u64(), name));
                }
            }
            if let Some(event) = packet.first(TRACK_EVENT).map(|field| Fields::new(field.as_bytes())) {
                if event.first(9).is_some_and(|kind| kind.as_u64() == 5) {
                    let is_named = event.first(10).or_else(|| event.first(23)).is_some();
                    events.push((event.first(11).expect("a track").as_u64(), is_named));
                }
            }
        }
        let names: Vec<_> = tracks.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["machine", "light"]);
        let [machine, light] = [tracks[0].0, tracks[1].0];
        assert_eq!(events, [(machine, true), (machine, false), (light, true), (light, true)]);
    }
}

/// Some are longer than a chunk. Their lengths are filled in after their chunk was handed over.
#[test]
fn packets_are_whole_and_in_order() {
    let [c, cxx] = &*TRACES;
    let pieces = |count: usize, of: fn(usize) -> u8| (0..count).map(|i| vec![of(i); 200]).collect::<Vec<_>>();
    let of_c = |name: &str, count| (name.to_owned(), pieces(count, |_| b'p'));
    assert_eq!(test_events(&c.1), [of_c("small", 1), of_c("small", 2), of_c("small", 3), of_c("large", 100)]);
    let of_cxx = |name: &str| (name.to_owned(), pieces(60, |i| b'a' + (i % 26) as u8));
    let (silent, weather): (Vec<_>, Vec<_>) = test_events(&cxx.1).into_iter().partition(|(name, _)| name == "silent");
    assert_eq!(weather, [of_cxx("first"), of_cxx("second"), of_cxx("while stopping")]);
    assert_eq!(silent, [("silent".to_owned(), vec![])]);
    skip(|| {
        Peer::TraceProcessor.require()?;
        TRACES.iter().for_each(|(_, packets)| tp::assert_clean(packets));
        Ok(())
    });
}
