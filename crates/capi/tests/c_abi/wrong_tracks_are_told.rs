//! Events on tracks that are not open, or of another kind: one line each on stderr.

use std::path::Path;
use std::process::Command;

use crate::abi_version::{AbiVersion, succeed};
use crate::build::{compile, file_in_tmp, program};

const NOT_OPEN: &str = "esatto: events are on a track that is not open, so they belong to no process: \
                        esatto_track_open comes before them, esatto_track_close after them, and an esatto::Track that \
                        was moved from has none";
const NO_COUNTER: &str = "esatto: values of a counter are on a track of another kind, so no reader shows them: open it \
                          with ESATTO_TRACK_OF_VALUES, or esatto::Track::counter";
const NO_STATES: &str = "esatto: states are on a track of another kind, so no reader shows them: open it with \
                         ESATTO_TRACK_OF_STATES, or esatto::Track::states";

/// Runs a program with the mistake that comes first, and returns what it says.
fn said(program: &Path, trace: &str, mistake: &str) -> Vec<String> {
    let output = succeed(Command::new(program).arg(file_in_tmp(trace)).arg(mistake));
    String::from_utf8(output.stderr).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn in_c() {
    let program = program(AbiVersion::V58, "wrong_tracks.c", &["-std=c11"]);
    for mistake in ["unopened", "closed"] {
        let expected = [mistake, NOT_OPEN, "both", "values", NO_COUNTER, "states", NO_STATES, "end"];
        assert_eq!(said(&program, "wrong-tracks-c.pftrace", mistake), expected);
    }
}

#[test]
fn in_cxx() {
    let program = file_in_tmp("wrong_tracks_cc");
    compile("g++", AbiVersion::V58, "wrong_tracks.cc", &program, &["-std=c++17", "-lperfetto_c"]);
    let expected = ["moved from", NOT_OPEN, "values", NO_COUNTER, "end"];
    assert_eq!(said(&program, "wrong-tracks-cc.pftrace", "moved from"), expected);
}
