//! Tracks whose ids or names are those of tracks on other levels.

use std::path::{Path, PathBuf};
use std::process::Command;

use esatto_tests::{Peer, skip, tp};

use crate::abi_version::{AbiVersion, succeed};
use crate::build::{compile, file_in_tmp};

/// Slices by name: how many there are, on how many tracks, their depths and durations.
const SLICES: &str = "SELECT name || ': ' || count(*) || ' on ' || count(DISTINCT track_id) || ', depth ' || \
                      max(depth) || ', ' || min(dur) || ' to ' || max(dur) AS x FROM slice GROUP BY name ORDER BY name";
const COUNTERS: &str = "SELECT DISTINCT t.name || ' ' || c.value AS x FROM counter c JOIN track t ON t.id = c.track_id \
                        GROUP BY t.id HAVING count(DISTINCT c.value) = 1 ORDER BY x";

fn record(compiler: &str, source: &str, standard: &str) -> PathBuf {
    let program = file_in_tmp(&source.replace('.', "_"));
    compile(
        compiler,
        AbiVersion::V58,
        source,
        &program,
        &[standard, "-Wshadow", "-Wpedantic", "-pthread", "-lperfetto_c"],
    );
    let trace = program.with_extension("pftrace");
    succeed(Command::new(program).arg(&trace));
    trace
}

fn texts(trace: &Path, sql: &str) -> Vec<String> {
    tp::rows(trace, sql).iter().map(|row| row.text("x").to_owned()).collect()
}

#[test]
fn in_c() {
    let trace = record("gcc", "track_levels.c", "-std=c11");
    skip(|| {
        Peer::TraceProcessor.require()?;
        let expected = [
            "equal: 7 on 4, depth 0, 100 to 100",
            "of a disk: 3 on 3, depth 0, 100 to 100",
            "of a name: 4 on 4, depth 0, 100 to 100",
            "of a path: 3 on 3, depth 0, 100 to 100",
            "of a thread: 2 on 2, depth 0, 100 to 100",
        ];
        assert_eq!(texts(&trace, SLICES), expected);
        assert_eq!(texts(&trace, COUNTERS), ["bytes 100.0", "bytes 200.0", "bytes 300.0"]);
        tp::assert_clean(&trace);
        Ok(())
    });
}

#[test]
fn in_cxx() {
    let trace = record("g++", "track_levels.cc", "-std=c++17");
    skip(|| {
        Peer::TraceProcessor.require()?;
        let expected = [
            "of a connection: 3 on 3, depth 0, 100 to 100",
            "of a path: 3 on 3, depth 0, 100 to 100",
            "of a thread: 2 on 2, depth 0, 100 to 100",
        ];
        assert_eq!(texts(&trace, SLICES), expected);
        tp::assert_clean(&trace);
        Ok(())
    });
}

#[test]
fn objects_of_one_name_can_have_rows_of_their_own() {
    let trace = record("gcc", "rows_of_tracks.c", "-std=c11");
    skip(|| {
        Peer::TraceProcessor.require()?;
        let sql = "SELECT group_concat(DISTINCT name) || ' ' || count(*) AS x FROM slice GROUP BY track_id ORDER BY x";
        assert_eq!(texts(&trace, sql), ["a 10", "b 10", "c 10"]);
        Ok(())
    });
}
