//! `esatto dump` prints the packets of a trace as Google's protobuf compiler does.

use esatto_tests::{Harness, Peer, esatto_bin, skip};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn trace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("traces/official-v56-{name}.pftrace"))
}

fn dump(trace: &Path, options: &[&str]) -> Output {
    Command::new(esatto_bin()).arg("dump").arg(trace).args(options).output().expect("it runs")
}

fn lines(trace: &Path, options: &[&str]) -> Vec<String> {
    let output = dump(trace, options);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn as_protoc_prints_them() {
    skip(|| {
        Peer::Protoc.require()?;
        let harness = Harness::new();
        let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/schema/proto");
        for name in ["track-events", "process-and-sys-stats", "ring-buffer-wrapped"] {
            let printed = dump(&trace(name), &[]).stdout;
            harness.write("dump.txt", &printed);
            // Protoc reads our text, and makes the bytes of it that it makes of its own text.
            let convert = |how: &str, input: &[u8]| {
                let mut command = Command::new("protoc");
                command.arg(format!("--{how}=perfetto.protos.Trace")).arg("-I").arg(&proto);
                command.arg(proto.join("protos/perfetto/trace/trace.proto"));
                harness.write("input", input);
                let input = std::fs::File::open(harness.path("input")).expect("it is there");
                let output = command.stdin(input).stderr(Stdio::piped()).output().expect("protoc");
                assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
                output.stdout
            };
            let theirs = convert("decode", &std::fs::read(trace(name)).expect("a trace"));
            assert!(theirs.len() > 10_000);
            assert!(convert("encode", &printed) == convert("encode", &theirs), "{name}");
        }
        Ok(())
    });
}

#[test]
fn only_those_that_are_asked_for() {
    let trace = trace("track-events");
    let count = |options: &[&str]| lines(&trace, options).iter().filter(|line| *line == "packet {").count();
    let all = count(&[]);
    let events = count(&["--type", "track_event"]);
    assert!(events > 1000 && events < all, "{events} of {all}");
    assert_eq!(count(&["--type", "track_event,trace_config"]), events + 1);
    assert_eq!(count(&["--limit", "3"]), 3);
    let of_service = count(&["--sequence", "1"]);
    assert!(of_service > 0 && of_service < all, "{of_service} of {all}");
    let first = lines(&trace, &["--type", "track_event", "--limit", "1"]);
    let time = first.iter().find_map(|line| line.trim().strip_prefix("timestamp: ")).expect("a time").to_owned();
    assert!(count(&["--from", &time, "--to", &time]) >= 1);
    assert_eq!(count(&["--from", "1", "--to", "2"]), 0);
}

#[test]
fn as_json_one_per_line() {
    let lines = lines(&trace("track-events"), &["--json", "--type", "track_event", "--limit", "5"]);
    assert_eq!(lines.len(), 5);
    for line in lines {
        let packet: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert!(packet["trackEvent"].is_object(), "{line}");
    }
}

#[test]
fn unknown_types_are_refused() {
    let output = dump(&trace("track-events"), &["--type", "track_events"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("TracePacket has no such field"), "{said}");
}

#[test]
fn up_to_the_place_where_the_file_is_torn() {
    let harness = Harness::new();
    let mut bytes = std::fs::read(trace("track-events")).expect("a trace");
    bytes.truncate(bytes.len() - 7);
    harness.write("t.pftrace", &bytes);
    let output = dump(&harness.path("t.pftrace"), &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("torn") && output.stdout.len() > 10_000, "{said}");
}
