//! `esatto info FILE` prints the content of a trace, also of one that breaks off. It says so if a
//! file is not a trace.

use esatto_tests::{Harness, beside_this_test, esatto_bin};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn official(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("traces").join(name)
}

fn info(file: &Path, options: &[&str]) -> Output {
    Command::new(esatto_bin()).arg("info").arg(file).args(options).output().expect("it runs")
}

fn json(file: &Path) -> Value {
    let output = info(file, &["--json"]);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}:\n{}{}", text(&output.stdout), text(&output.stderr)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn of_a_whole_trace() {
    let file = official("official-v56-track-events.pftrace");
    let output = info(&file, &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    for part in ["track_event", "3,003", "official-producer", "worker-0", "worker-2"] {
        assert!(stdout.contains(part) || stdout.contains(&part.replace(',', "")), "'{part}' is not in\n{stdout}");
    }
    assert!(json(&file).is_object());
}

#[test]
fn of_standard_input() {
    let file = official("official-v56-track-events.pftrace");
    let stdin = std::fs::File::open(&file).expect("the trace");
    let output = Command::new(esatto_bin()).args(["info", "-"]).stdin(stdin).output().expect("it runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), text(&info(&file, &[]).stdout));
}

/// A service inside a program tells its version, but nothing of the system.
#[test]
fn of_a_program_that_records_itself() {
    let harness = Harness::new();
    harness.start("whole", harness.command(beside_this_test("esatto-whole")).args(["return", "trace"])).wait_ok();
    let stdout = text(&info(&harness.path("trace"), &[]).stdout);
    assert!(stdout.contains("\nService "), "{stdout}");
    assert!(!stdout.lines().any(|line| line.trim() == "System"), "{stdout}");
}

#[test]
fn of_a_torn_trace_up_to_the_tear() {
    let whole = std::fs::read(official("official-v56-track-events.pftrace")).expect("the trace");
    let harness = Harness::new();
    let torn = harness.write("torn", &whole[..50_000]);
    let output = info(&torn, &[]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(stdout.contains("track_event"), "{stdout}{stderr}");
    // The offset of the packet that is cut off.
    let mut offset = 0;
    while let Some(next) = end_of_packet(&whole, offset).filter(|next| *next <= 50_000) {
        offset = next;
    }
    let packets = esatto_trace::packets(&whole[..offset]).count();
    assert!(stdout.contains(&format!("\nReadable  {packets} packets, up to byte {offset}\n")), "{stdout}");
    let file = torn.display();
    let line = format!(
        "esatto: {file} is damaged at byte {offset}: the report is about the {packets} packets that can be read\n"
    );
    assert_eq!(stderr, line);
    assert!(!output.status.success());
}

/// Where the packet at `offset` ends.
fn end_of_packet(trace: &[u8], offset: usize) -> Option<usize> {
    let mut at = offset + 1;
    let mut length = 0;
    for shift in (0..).step_by(7) {
        let byte = *trace.get(at)?;
        at += 1;
        length |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    Some(at + length)
}

#[test]
fn not_of_a_file_that_is_no_trace() {
    let harness = Harness::new();
    for (name, content, why) in [
        ("elf", &b"\x7fELF\x02\x01\x01\0\0\0\0\0"[..], ": it is an ELF binary"),
        ("text", b"hello, world\n", ": it looks like a text"),
        ("empty", b"", ": the file is empty"),
        (
            "lines",
            b"\n\x05 text\n",
            ", or its first packet is damaged: the packet at byte 0 is malformed at its byte 2",
        ),
    ] {
        let file = harness.write(name, content);
        let line = format!("esatto: {} is not a Perfetto trace{why}\n", file.display());
        let output = info(&file, &[]);
        assert_eq!((text(&output.stdout).as_str(), text(&output.stderr)), ("", line.clone()));
        assert!(!output.status.success(), "{name}");
        let output = info(&file, &["--json"]);
        assert_eq!(text(&output.stderr), line);
        assert!(json(&file)["errors"][0].is_object() && !output.status.success(), "{name}");
    }
    let output = info(harness.folder(), &[]);
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with("esatto: cannot read the trace ") && stderr.lines().count() == 1, "{stderr}");
    assert!(output.stdout.is_empty() && !output.status.success());
    let output = info(Path::new("no/such/trace"), &[]);
    assert!(!output.status.success() && text(&output.stderr).contains("no/such/trace"));
}
