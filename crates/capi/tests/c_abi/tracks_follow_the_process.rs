//! Tracks that are made before the library knows the process, or before a fork.

use std::path::Path;
use std::process::Command;

use esatto_tests::Peer;
use esatto_tests::{skip, tp};

use crate::abi_version::{AbiVersion, succeed};
use crate::build::{compile, file_in_tmp, program};

/// Events on tracks of their own, with the tracks above them, and the process or thread that the
/// highest one belongs to.
fn rows(trace: &Path) -> Vec<String> {
    const SQL: &str = "WITH e(what, track) AS (
          SELECT name, track_id FROM slice UNION ALL SELECT CAST(value AS TEXT), track_id FROM counter),
        owner(track, name) AS (
          SELECT t.id, 'process ' || pid FROM process_track t JOIN process USING (upid)
          UNION ALL SELECT t.id, 'process ' || pid FROM process_counter_track t JOIN process USING (upid)
          UNION ALL SELECT t.id, 'thread ' || tid FROM thread_counter_track t JOIN thread USING (utid))
        SELECT DISTINCT e.what || ': ' || concat_ws(' < ', t.name, p.name, coalesce(o.name, op.name)) AS x
        FROM e JOIN track t ON t.id = e.track LEFT JOIN track p ON p.id = t.parent_id
        LEFT JOIN owner o ON o.track = t.id LEFT JOIN owner op ON op.track = p.id ORDER BY x";
    tp::rows(trace, SQL).iter().map(|row| row.text("x").to_owned()).collect()
}

#[test]
fn in_c_before_the_start_and_in_a_forked_child() {
    for version in AbiVersion::ALL {
        let program = program(version, "tracks_of_processes.c", &["-std=c11", "-D_GNU_SOURCE"]);
        let traces = ["parent", "child"].map(|who| file_in_tmp(&format!("tracks-of-{who}-{}.pftrace", version.name())));
        let output = succeed(Command::new(program).args(&traces));
        let pids = String::from_utf8(output.stdout).expect("two numbers");
        skip(|| {
            Peer::TraceProcessor.require()?;
            for (trace, pid) in traces.iter().zip(pids.split_whitespace()) {
                let expected = [
                    format!("1.0: load < process {pid}"),
                    format!("2.0: of the thread < thread {pid}"),
                    "alone: of none".to_owned(),
                    format!("nested: named < disk < process {pid}"),
                    format!("read: disk < process {pid}"),
                    format!("together: below < disk < process {pid}"),
                ];
                assert_eq!(rows(trace), expected, "{}", version.name());
            }
            Ok(())
        });
    }
}

#[test]
fn in_cxx_before_main() {
    let (program, trace) = (file_in_tmp("static_tracks"), file_in_tmp("static-tracks.pftrace"));
    compile("g++", AbiVersion::V58, "static_tracks.cc", &program, &["-std=c++17", "-lperfetto_c"]);
    let output = succeed(Command::new(program).arg(&trace));
    let pid = String::from_utf8(output.stdout).expect("a number");
    skip(|| {
        Peer::TraceProcessor.require()?;
        let pid = pid.trim();
        let lanes = "SELECT count(*) || ' on ' || count(DISTINCT track_id) AS x FROM slice
                     WHERE name = 'connection' AND dur >= 0 AND depth = 0";
        assert_eq!(tp::rows(&trace, lanes)[0].text("x"), "10 on 10", "they have ends, though they moved");
        let expected = [
            format!("3.0: depth < queue < process {pid}"),
            format!("connection: lane < process {pid}"),
            format!("job: queue < process {pid}"),
            format!("nested: named < queue < process {pid}"),
        ];
        assert_eq!(rows(&trace), expected);
        Ok(())
    });
}
