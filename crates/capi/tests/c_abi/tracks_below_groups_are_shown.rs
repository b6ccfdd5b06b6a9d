//! Tracks below groups: tracks that have no events of their own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use esatto_protozero::Fields;
use esatto_tests::Peer;
use esatto_tests::{skip, tp};

use crate::abi_version::{AbiVersion, succeed};
use crate::build::{compile, file_in_tmp, program};

/// Rows that the trace processor has of a trace: names of slices and counters, with the names of
/// their tracks from the inside out.
fn rows(trace: &Path) -> Vec<String> {
    const SQL: &str = "WITH e(ts, name, track) AS (
          SELECT ts, name, track_id FROM slice UNION ALL SELECT ts, CAST(value AS TEXT), track_id FROM counter)
        SELECT DISTINCT e.name || ': ' || concat_ws(' < ', t.name, p.name, g.name) AS x
        FROM e JOIN track t ON t.id = e.track
        LEFT JOIN track p ON p.id = t.parent_id LEFT JOIN track g ON g.id = p.parent_id ORDER BY ts, x DESC";
    tp::rows(trace, SQL).iter().map(|row| row.text("x").to_owned()).collect()
}

/// Reads a trace, and checks that each event on a track of its own comes after the descriptors of
/// this track and all above it, since the last clear of its sequence. Returns the numbers of events
/// on tracks of states, and of clears.
fn check_descriptors(trace: &Path) -> (usize, usize) {
    let trace = std::fs::read(trace).expect("it was recorded");
    // Of each sequence: the tracks, with their parents and if they are of states.
    let mut sequences: HashMap<u64, HashMap<u64, (u64, bool)>> = HashMap::new();
    let (mut states, mut clears) = (0, 0);
    let number = |message: &[u8], field| Fields::new(message).first(field).map_or(0, |field| field.as_u64());
    for packet in Fields::new(&trace) {
        let packet = packet.as_bytes();
        let tracks = sequences.entry(number(packet, 10)).or_default();
        if number(packet, 13) & 1 != 0 {
            tracks.clear();
            clears += 1;
        }
        if let Some(descriptor) = Fields::new(packet).first(60) {
            let of_states = Fields::new(descriptor.as_bytes()).first(18).is_some();
            let (uuid, parent) = (number(descriptor.as_bytes(), 1), number(descriptor.as_bytes(), 5));
            tracks.insert(uuid, (parent, of_states));
        }
        if let Some(event) = Fields::new(packet).first(11) {
            let mut uuid = number(event.as_bytes(), 11);
            states += usize::from(tracks.get(&uuid).is_some_and(|track| track.1));
            while uuid != 0 {
                uuid = tracks.get(&uuid).unwrap_or_else(|| panic!("no descriptor of track {uuid:#x}")).0;
            }
        }
    }
    (states, clears)
}

fn run(program: &Path, traces: &[PathBuf]) {
    succeed(Command::new(program).args(traces));
}

#[test]
fn in_c_in_two_sessions_and_after_clears() {
    let program = program(AbiVersion::V58, "track_groups.c", &["-std=c11", "-D_GNU_SOURCE"]);
    let traces = [1, 2].map(|number| file_in_tmp(&format!("groups-{number}.pftrace")));
    run(&program, &traces);
    assert_eq!(check_descriptors(&traces[1]), (3, 2), "one sequence per thread");
    let (states, clears) = check_descriptors(&traces[0]);
    assert!(states == 4 && clears >= 3, "{states} states, {clears} clears");
    skip(|| {
        Peer::TraceProcessor.require()?;
        let of = |names: &[&str]| {
            let mut rows: Vec<_> = names.iter().map(|name| format!("{name}: requests < queue < disk")).collect();
            let counters = ["7.0: depth < queue < disk", "8.0: worldwide < world", "9.0: of a thread"];
            rows.splice(1..1, counters.map(str::to_owned));
            rows
        };
        assert_eq!(rows(&traces[0]), of(&["first", "both", "on a thread", "after clears"]));
        assert_eq!(rows(&traces[1]), of(&["both", "on a thread", "after clears"]));
        Ok(())
    });
}

#[test]
fn in_cxx_after_the_groups_have_ended() {
    let (program, trace) = (file_in_tmp("track_groups_cc"), file_in_tmp("groups-cc.pftrace"));
    compile("g++", AbiVersion::V58, "track_groups.cc", &program, &["-std=c++17", "-Wshadow", "-lperfetto_c"]);
    run(&program, std::slice::from_ref(&trace));
    assert_eq!(check_descriptors(&trace), (1, 1));
    skip(|| {
        Peer::TraceProcessor.require()?;
        let expected = ["request: requests < queue < disk", "7.0: depth < queue < disk", "8.0: worldwide < world"];
        assert_eq!(rows(&trace), expected);
        Ok(())
    });
}
