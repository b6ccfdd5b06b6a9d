//! §7: the output file.

use crate::rows::{REFUSED, Row, SHORT, compare, output_of, run_ours, same};
use esatto_tests::{Harness, Implementation, Peer};
use std::os::unix::fs::PermissionsExt as _;

const FILES: &[(&str, &str)] = &[
    ("c.cfg", SHORT),
    ("refused.cfg", REFUSED),
    ("file.cfg", "write_into_file: true duration_ms: 200 buffers { size_kb: 64 }"),
    ("old", "an older file"),
];

same! {
    normal_recording: ["-c", "c.cfg", "--txt", "-o", "t"] => 0;
    light_mode: ["-t", "200ms", "-o", "t"] => 0;
    write_into_file: ["-c", "file.cfg", "--txt", "-o", "t"] => 0;
    write_into_file_without_out: ["-c", "file.cfg", "--txt"] => 1;
    a_folder_that_does_not_exist: ["-c", "c.cfg", "--txt", "-o", "nowhere/t"] => 1;
    no_clobber_and_a_new_file: ["-c", "c.cfg", "--txt", "-o", "t", "--no-clobber"] => 0;
    no_clobber_and_an_old_file: ["-c", "c.cfg", "--txt", "-o", "old", "--no-clobber"] => 1;
}

/// The service makes the file.
#[test]
fn output_path() {
    esatto_tests::skip(|| {
        Peer::Official.require()?;
        for service in [Implementation::Ours, Implementation::Theirs] {
            for client in [Implementation::Ours, Implementation::Theirs] {
                let harness = Harness::with_perfetto(client);
                let _service = harness.service(service);
                let made = harness.path("made");
                let config = format!("output_path: \"{}\" write_into_file: true {SHORT}", made.display());
                harness.write("c.cfg", config);
                let output = output_of(&mut harness.perfetto(&["-c", "c.cfg", "--txt"]), "");
                let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
                assert_eq!(output.status.code(), Some(0), "{client} {service}: {stderr}");
                assert!(stderr.contains("Trace written into the output file"), "{client} {service}: {stderr}");
                assert!(std::fs::metadata(&made).expect("the trace").len() > 0);
                // Now it exists.
                let output = output_of(&mut harness.perfetto(&["-c", "c.cfg", "--txt"]), "");
                assert_eq!(output.status.code(), Some(1), "{client} {service}: {output:?}");
            }
        }
        Ok(())
    });
}

#[test]
fn stdout() {
    let row = Row { args: &["-c", "c.cfg", "--txt", "-o", "-"], files: FILES, ..Row::default() };
    compare(row, |ours, theirs| {
        for ran in [ours, theirs] {
            assert_eq!(ran.stdout.first(), Some(&0x0a), "a packet begins");
            assert!(ran.stderr.contains("bytes into stdout"), "{}", ran.stderr);
        }
        assert!(ours.files.is_empty());
    });
}

#[test]
fn new_files_are_private_and_old_ones_keep_their_mode() {
    compare(Row { args: &["-t", "200ms", "-o", "t"], ..Row::default() }, |ours, theirs| {
        for ran in [ours, theirs] {
            let mode = std::fs::metadata(ran.harness.path("t")).expect("the trace").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    });
    compare(Row { args: &["-t", "200ms", "-o", "old"], files: FILES, ..Row::default() }, |ours, theirs| {
        for ran in [ours, theirs] {
            let path = ran.harness.path("old");
            assert_ne!(std::fs::metadata(&path).expect("the trace").permissions().mode() & 0o777, 0o600);
            assert_eq!(std::fs::read(&path).expect("the trace")[0], 0x0a);
        }
    });
}

/// Perfetto's command empties it. Ours keeps it unless a recording begins.
#[test]
fn a_recording_that_does_not_begin_keeps_an_old_file() {
    let row = Row { args: &["-t", "200ms", "-o", "old"], files: FILES, without_service: true, ..Row::default() };
    let ran = run_ours(row);
    assert_eq!(ran.code, Some(1));
    assert_eq!(std::fs::read(ran.harness.path("old")).expect("it is there"), b"an older file");
}

#[test]
fn a_refused_session_leaves_no_file() {
    let row = Row { args: &["-c", "refused.cfg", "--txt", "-o", "t"], files: FILES, ..Row::default() };
    compare(row, |ours, theirs| {
        for ran in [ours, theirs] {
            assert!(!ran.harness.path("t").exists(), "{}", ran.stderr);
        }
    });
}
