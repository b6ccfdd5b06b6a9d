//! `-o`: a recording that comes to nothing changes no file, and standard output is only written to.

use esatto_tests::{Harness, Implementation, esatto_bin};
use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The service refuses it.
const REFUSED: &str = "buffers { size_kb: 0 } data_sources { config { name: \"track_event\" } }\n";
/// The service writes the file, and refuses it.
const REFUSED_FILE: &str =
    "buffers { size_kb: 0 } data_sources { config { name: \"track_event\" } }\nwrite_into_file: true\n";
/// The service writes the file.
const INTO_FILE: &str = "buffers { size_kb: 64 } data_sources { config { name: \"track_event\" } }
write_into_file: true\nduration_ms: 200\n";

/// A packet with a timestamp and a sequence.
const OLD_TRACE: [u8; 6] = [0x0a, 4, 0x40, 7, 0x50, 1];

fn record(harness: &Harness, args: &[&str], stdout: Stdio) -> Output {
    let mut command: Command = harness.command(esatto_bin());
    let child = command.arg("record").args(args).stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
    child.spawn().expect("it starts").wait_with_output().expect("it ends")
}

fn refused(harness: &Harness, config: &str) {
    harness.write("my.cfg", config);
    let output = record(harness, &["-o", "trace", "-c", "my.cfg", "--", "true"], Stdio::null());
    assert!(!output.status.success());
}

/// Asserts that a recording has not failed. It may have recorded no event.
fn ok(output: &Output) {
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Asserts that these bytes are a trace of some packets.
fn assert_trace(bytes: &[u8]) {
    let packets: Result<Vec<_>, _> = esatto_trace::packets(bytes).collect();
    assert!(packets.expect("a trace").len() > 2);
}

#[test]
fn an_empty_file_after_a_refused_config() {
    for config in [REFUSED, REFUSED_FILE] {
        let harness = Harness::new();
        let path = harness.write("trace", "");
        refused(&harness, config);
        assert!(path.exists(), "{config}");
    }
}

#[test]
fn a_file_with_content_after_a_refused_config() {
    for config in [REFUSED, REFUSED_FILE] {
        let harness = Harness::new();
        let path = harness.write("trace", OLD_TRACE);
        refused(&harness, config);
        assert_eq!(std::fs::read(&path).expect("it is there"), OLD_TRACE, "{config}");
    }
}

#[test]
fn a_new_file_goes_away_after_a_refused_config() {
    for config in [REFUSED, REFUSED_FILE] {
        let harness = Harness::new();
        refused(&harness, config);
        assert!(!harness.path("trace").exists(), "{config}");
    }
}

#[test]
fn an_old_trace_is_replaced_by_a_new_one() {
    let harness = Harness::new();
    harness.write("into_file.cfg", INTO_FILE);
    for args in [&["-o", "trace", "--", "true"][..], &["-o", "trace", "-c", "into_file.cfg", "--", "true"]] {
        let path = harness.write("trace", OLD_TRACE.repeat(1 << 18));
        ok(&record(&harness, args, Stdio::null()));
        assert_trace(&std::fs::read(&path).expect("it is there"));
    }
}

#[test]
fn a_file_that_is_no_trace_is_kept() {
    let harness = Harness::new();
    harness.write("into_file.cfg", INTO_FILE);
    let configs: [&[&str]; 2] = [&[], &["-c", "into_file.cfg"]];
    for (content, config) in
        ["fn main() {}\n", "\n\n# A heading\n", "\u{7f}ELF"].iter().flat_map(|c| configs.map(|config| (c, config)))
    {
        let path = harness.write("main.rs", content);
        let args = [&["-o", "main.rs"], config, &["--", "touch", "ran"]].concat();
        let output = record(&harness, &args, Stdio::null());
        let said = String::from_utf8_lossy(&output.stderr);
        let line = "esatto: cannot write main.rs: it has content that is no trace; choose another file, or overwrite it \
                    with --force\n";
        assert_eq!((output.status.code(), &*said), (Some(1), line));
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), *content);
        assert!(!harness.path("ran").exists());
        ok(&record(&harness, &[&["--force"], &args[..]].concat(), Stdio::null()));
        assert_trace(&std::fs::read(&path).expect("it is there"));
        std::fs::remove_file(harness.path("ran")).expect("it has run");
    }
    harness.write("main.rs", "fn main() {}\n");
    let output = harness.command(esatto_bin()).args(["demo", "-o", "main.rs"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("no trace; choose another file with -o FILE"), "{said}");
}

#[test]
fn a_file_that_the_shell_appends_to() {
    let harness = Harness::new();
    harness.write("into_file.cfg", INTO_FILE);
    let configs: [&[&str]; 2] = [&[], &["-c", "into_file.cfg"]];
    for (name, config) in ["-", "/dev/stdout"].into_iter().flat_map(|name| configs.map(|config| (name, config))) {
        let path = harness.write("log", "earlier\n");
        let log = OpenOptions::new().append(true).open(&path).expect("it opens");
        let args = [&["-o", name], config, &["--", "true"]].concat();
        ok(&record(&harness, &args, log.into()));
        let bytes = std::fs::read(&path).expect("it is there");
        assert!(bytes.starts_with(b"earlier\n"), "{args:?}: the shell's file has lost its content");
        assert_trace(&bytes[8..]);
    }
}

#[test]
fn a_file_that_the_shell_has_already_written_to() {
    let harness = Harness::new();
    let mut command: Command = harness.command("sh");
    command.env("ESATTO", esatto_bin()).args(["-c", "{ echo earlier; $ESATTO record -o - -- true; } > log"]);
    ok(&command.output().expect("it runs"));
    let bytes = std::fs::read(harness.path("log")).expect("it is there");
    assert!(bytes.starts_with(b"earlier\n"), "the shell's file has lost its content");
    assert_trace(&bytes[8..]);
}

#[test]
fn a_pipe_gets_the_trace_and_nothing_else() {
    let harness = Harness::new();
    let output = record(&harness, &["-o", "-", "--", "echo", "text of the command"], Stdio::piped());
    ok(&output);
    assert_trace(&output.stdout);
    assert!(String::from_utf8_lossy(&output.stderr).contains("text of the command"));
}

#[test]
fn a_named_pipe_gets_the_trace() {
    let harness = Harness::new();
    let made = Command::new("mkfifo").arg(harness.path("fifo")).status().expect("it runs");
    assert!(made.success());
    let reader = std::thread::spawn({
        let path = harness.path("fifo");
        move || std::fs::read(path).expect("it opens")
    });
    ok(&record(&harness, &["-o", "fifo", "--", "true"], Stdio::null()));
    assert_trace(&reader.join().expect("it reads"));
}

#[test]
fn a_terminal_is_refused() {
    let harness = Harness::new();
    let mut command: Command = harness.command("script");
    command.env("ESATTO", esatto_bin());
    command.args(["-qec", "$ESATTO record -o - -- touch ran", "/dev/null"]).stdin(Stdio::null());
    let output = command.output().expect("script runs");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && shown.contains("terminal"), "{shown}");
    assert!(!Path::new(&harness.path("ran")).exists());
}

#[test]
fn a_full_disk_keeps_the_earlier_output_of_the_shell() {
    let harness = Harness::new();
    // The limit of the file size (blocks of 1 KiB) lies within the trace.
    let script = "{ head -c 1500 /dev/zero; ulimit -f 2; trap '' XFSZ; $ESATTO record -o - -- true; } > log";
    let mut command: Command = harness.command("bash");
    let output = command.env("ESATTO", esatto_bin()).args(["-c", script]).output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("cannot write all"), "{stderr}");
    let bytes = std::fs::read(harness.path("log")).expect("it is there");
    assert!(bytes.len() >= 1500 && bytes[..1500].iter().all(|byte| *byte == 0), "{} bytes are left", bytes.len());
}

#[test]
fn a_recording_without_a_service_changes_nothing() {
    let harness = Harness::new();
    let path = harness.write("trace", OLD_TRACE);
    assert!(!record(&harness, &["-o", "trace"], Stdio::null()).status.success());
    assert_eq!(std::fs::read(&path).expect("it is there"), OLD_TRACE);
    // With a service, the session fills the user's file.
    let _service = harness.service(Implementation::Ours);
    ok(&record(&harness, &["-o", "trace", "-t", "200ms"], Stdio::null()));
    assert_trace(&std::fs::read(&path).expect("it is there"));
}

#[test]
fn a_file_that_the_service_could_not_create_is_not_claimed() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let old = harness.write("old.trace", vec![b'x'; 5000]);
    std::os::unix::fs::symlink("missing", harness.path("link")).expect("a link");
    let names = [harness.path("no/folder/trace"), "/dev/null".into(), old, harness.path("link"), "no/trace".into()];
    for name in names {
        let name = name.display();
        harness.write("my.cfg", format!("{INTO_FILE} output_path: \"{name}\""));
        let output = record(&harness, &["-c", "my.cfg"], Stdio::null());
        let said = String::from_utf8_lossy(&output.stderr);
        let failure = format!("esatto: the service refused the config: output_path {name}: ");
        assert!(said.starts_with(&failure) && said.lines().count() == 1, "{said}");
        assert_eq!(output.status.code(), Some(1), "{said}");
    }
    assert!(!harness.path("missing").exists());
}

#[test]
fn a_relative_output_path_is_in_the_folder_of_the_service() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let other = harness.path("other");
    std::fs::create_dir(&other).expect("a folder");
    let config = harness.write("my.cfg", format!("{INTO_FILE} output_path: \"trace\""));
    let mut command = harness.command(esatto_bin());
    let output = command.args(["record", "-c"]).arg(config).current_dir(&other).output().expect("record");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("The service wrote the trace into trace, in the folder of the service.\n"), "{said}");
    assert!(output.status.success() && harness.path("trace").exists() && !other.join("trace").exists(), "{said}");
}

#[test]
fn a_file_that_cannot_be_read_back_may_have_events() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    harness.write("my.cfg", INTO_FILE);
    let output = record(&harness, &["-o", "/dev/null", "-c", "my.cfg"], Stdio::null());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("No event was recorded"), "{said}");
}

#[test]
fn a_closed_stdout_is_no_target() {
    let harness = Harness::new();
    let mut shell = harness.command("sh");
    let script =
        "\"$0\" record -o - -- true >&-; closed=$?; \"$0\" record -o - -- true > /dev/null; echo \"$closed $?\"";
    let output = shell.args(["-c", script]).arg(esatto_bin()).output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("cannot write -: stdout is closed"), "{stderr}");
    // The status of a recording without an event is 3.
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1 3\n", "{stderr}");
}
