//! The official crates `perfetto-sdk` over `perfetto-sdk-sys`, in non-vendored mode, on our library
//! in both versions (`docs/spec/c-abi.md` §17). The tests run a program of ours that uses every
//! public item (`program`), and the crates' own tests. Cargo fetches the crates for the tests. They
//! are not part of our workspace: the program has its own workspaces and lock files.

#[path = "../c_abi/abi_version.rs"]
mod abi_version;
mod headers;
mod items;
mod messages;
mod own_tests;
mod project;

use esatto_tests::{Harness, Implementation, Peer, Skip, tp};

use abi_version::AbiVersion;
use project::Project;

/// The tests of a version.
macro_rules! versions {
    ($($name:ident $version:ident,)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn every_public_item_works_in_the_process() {
                esatto_tests::skip(|| run(AbiVersion::$version, None));
            }

            #[test]
            fn every_public_item_works_with_our_service() {
                esatto_tests::skip(|| run(AbiVersion::$version, Some(Implementation::Ours)));
            }

            #[test]
            fn every_public_item_works_with_perfettos_service() {
                esatto_tests::skip(|| {
                    Peer::Official.require()?;
                    run(AbiVersion::$version, Some(Implementation::Theirs))
                });
            }

            #[test]
            fn every_public_item_is_used() {
                esatto_tests::skip(|| items::all_are_used(&Project::fetch(AbiVersion::$version)?));
            }

            #[test]
            fn the_crates_own_tests_pass() {
                esatto_tests::skip(|| own_tests::pass(&Project::fetch(AbiVersion::$version)?));
            }
        }
    )*};
}

versions! {
    v58 V58,
    v59 V59,
}

#[test]
fn perfettos_header_lies_beside_ours_in_either_order() {
    esatto_tests::skip(|| headers::work_in_either_order(&Project::fetch(AbiVersion::V59)?));
}

/// Runs the program, and checks its traces with the trace processor.
fn run(version: AbiVersion, service: Option<Implementation>) -> Result<(), Skip> {
    let project = Project::fetch(version)?;
    let program = project.program();
    let harness = Harness::new();
    let service = service.map(|implementation| harness.service(implementation));
    let mut command = harness.command(program);
    command.env("LD_LIBRARY_PATH", version.folder()).env("RUST_BACKTRACE", "0").arg(harness.folder());
    command.args(service.is_some().then_some("system"));
    harness.start("official", &mut command).wait_ok();

    Peer::TraceProcessor.require()?;
    // The trace processor has no table for packets of custom data sources. The program has checked
    // them.
    let sql = [tp::COMPLAINTS, SLICES, TRACKS, ARGS, COUNTERS, FLOWS].join(";\n");
    let answers = tp::query(&harness.path("track_events"), &sql);
    let [complaints, slices, tracks, args, counters, flows] = &answers[..] else { panic!("{} answers", answers.len()) };
    // The program writes an unknown field.
    assert!(complaints.iter().all(|row| row.text("name") == "unknown_extension_fields"), "{complaints:#?}");
    let x = |rows: &[tp::Row]| rows.iter().map(|row| row.text("x").to_owned()).collect::<Vec<_>>();
    assert_eq!(x(slices), EXPECTED_SLICES);
    assert_eq!(x(tracks), EXPECTED_TRACKS);
    assert_eq!(x(args), EXPECTED_ARGS);
    assert_eq!(x(counters), ["counter -79.0", "dynamic counter 0.5"]);
    assert_eq!(x(flows), ["flow begins -> flow ends"; 2]);
    tp::assert_clean(&harness.path("data_source"));
    Ok(())
}

/// Times of other clocks are converted, with a small difference after each clock snapshot.
const SLICES: &str = "SELECT s.category || ': ' || s.name || ifnull(' in ' || p.name, '') || iif(s.name = '0.6 ms', ' ' || ((s.dur + 5000) / 10000), '') AS x \
    FROM slice s LEFT JOIN slice p ON p.id = s.parent_id WHERE s.dur >= 0 ORDER BY x";
const EXPECTED_SLICES: &[&str] = &[
    "by hand: by hand",
    "by hand: by hand",
    "on: 0.6 ms 60",
    "on: 0.6 ms 60",
    "on: 0.6 ms 60",
    "on: annotated",
    "on: any",
    "on: any slice",
    "on: flow begins",
    "on: flow ends",
    "on: flow ends",
    "on: inline",
    "on: inner in slice",
    "on: instant",
    "on: nested in a registered track",
    "on: nested in the process",
    "on: nested in the thread",
    "on: on a described track",
    "on: on a dynamic registered track",
    "on: on a dynamic track",
    "on: on a named track",
    "on: on a registered track",
    "on: scoped",
    "on: scoped with both in scoped with",
    "on: scoped with in scoped",
    "on: slice",
    "on: with fields",
    "own: of a category by hand",
];
const TRACKS: &str = "SELECT s.name || ': ' || t.name || ifnull(' in ' || p.name, '') AS x FROM slice s JOIN track t ON t.id = s.track_id \
    LEFT JOIN track p ON p.id = t.parent_id WHERE s.name GLOB 'on a*' OR s.name GLOB 'nested *' ORDER BY x";
const EXPECTED_TRACKS: &[&str] = &[
    "nested in a registered track: described inside in registered",
    "nested in the process: inner in outer",
    "nested in the thread: of the thread",
    "on a described track: described",
    "on a dynamic registered track: registered dynamic in registered",
    "on a dynamic track: dynamic 2 in named",
    "on a named track: named",
    "on a registered track: registered",
];
const ARGS: &str = "SELECT s.name || ': ' || a.key || ' = ' || a.display_value AS x FROM slice s JOIN args a USING (arg_set_id) \
    WHERE a.key GLOB 'debug.*' OR a.key GLOB 'source_location*' ORDER BY x";
const EXPECTED_ARGS: &[&str] = &[
    "annotated: debug.bool = true",
    "annotated: debug.double = 1.5",
    "annotated: debug.int = -9223372036854775808",
    "annotated: debug.pointer = 0x10",
    "annotated: debug.text = täxt",
    "annotated: debug.uint = 9223372036854775807",
    "inner: debug.at begin = true",
    "inner: debug.at end = false",
    "scoped with both: debug.second = 2",
    "scoped with: debug.first = 1",
    "with fields: source_location.file_name = file.rs",
    "with fields: source_location.line_number = 17",
];
const COUNTERS: &str =
    "SELECT t.name || ' ' || c.value AS x FROM counter c JOIN counter_track t ON t.id = c.track_id ORDER BY c.ts";
const FLOWS: &str =
    "SELECT o.name || ' -> ' || i.name AS x FROM flow JOIN slice o ON o.id = slice_out JOIN slice i ON i.id = slice_in";
