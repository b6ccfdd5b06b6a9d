//! The sandbox of `traced.service` holds all that the daemon needs, and really is one.

use crate::sandbox::{STATE, Sandbox, allowed_calls};
use crate::unit::Unit;
use esatto_tests::wire::{Proto, last};
use esatto_tests::workload::{self, CONFIG_WITHOUT_DEBUG, Expected, Workload};
use esatto_tests::{Implementation, Peer, Signal, beside_this_test, skip, wait_until, wire};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

const WORKLOAD: Workload = Workload { threads: 2, rounds: 200, pause_us: 500 };

const STREAMED: &str = r#"
buffers { size_kb: 512 fill_policy: RING_BUFFER }
write_into_file: true
file_write_period_ms: 100
flush_period_ms: 100
data_sources { config {
  name: "track_event"
  track_event_config { enabled_categories: "rendering" }
} }
"#;

#[test]
fn sessions_files_and_the_end() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let Sandbox { harness, mut traced, manager } = Sandbox::start()?;
        let mut message = [0; 1000];
        let len = manager.recv(&mut message).expect("the manager is told from in there");
        assert!(message[..len].starts_with(b"READY=1\n"));
        // Into files of the consumer's, which the daemon could not even see.
        for (name, config) in [("trace", CONFIG_WITHOUT_DEBUG), ("streamed", STREAMED)] {
            let mut recording = harness.record(Implementation::Ours, name, config);
            harness.wait_for_sessions(1);
            let mut application = harness.application(Implementation::Ours, WORKLOAD);
            application.wait_ok();
            let expected = Expected { pid: application.pid(), workload: WORKLOAD, details: false };
            workload::assert_whole(&harness.stop(&mut recording), &[expected]);
        }
        traced.signal(Signal::TERM);
        traced.wait_ok();
        assert!(harness.producer_socket().exists(), "it is not the daemon's");
        Ok(())
    });
}

#[test]
fn files_where_the_unit_has_a_place_for_them() {
    skip(|| {
        let Sandbox { harness, mut traced, .. } = Sandbox::start()?;
        let enable = |path: &str| {
            let config = Proto::new()
                .message(1, &Proto::new().int(1, 64)) // buffers.size_kb
                .int(8, 1) // write_into_file
                .bytes(29, path); // output_path
            let mut consumer = wire::Peer::consumer(&harness);
            let (id, frame) = consumer.call_frame("EnableTracing", &Proto::new().message(1, &config));
            consumer.send(&frame);
            (consumer, id)
        };
        let (mut consumer, id) = enable(&format!("{STATE}/trace"));
        let trace = harness.path("state/trace");
        wait_until("the file is there", || trace.exists().then_some(()));
        assert!(consumer.call("DisableTracing", &Proto::new()).success);
        assert!(consumer.reply_to(id).success);
        let meta = std::fs::metadata(&trace).expect("it is there");
        assert_eq!((meta.uid(), meta.mode() & 0o777), (65534, 0o644));
        assert!(meta.len() > 0);
        // Not elsewhere.
        for path in ["/tmp/trace", "/run/trace", "/root/trace"] {
            let (mut consumer, id) = enable(path);
            let reply = consumer.reply_to(id);
            let error = last(&reply.body, 3).unwrap_or_default(); // EnableTracingResponse.error
            assert!(!error.is_empty(), "{path} was accepted");
        }
        traced.signal(Signal::INT);
        traced.wait_ok();
        Ok(())
    });
}

#[test]
fn and_nothing_else_is_allowed() {
    skip(|| {
        let Sandbox { harness, mut traced, .. } = Sandbox::start()?;
        let proc = Path::new("/proc").join(traced.pid().to_string());
        let status = std::fs::read_to_string(proc.join("status")).expect("it runs");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap_or_else(|| panic!("no {name} in {status}")).split_ascii_whitespace().next().expect("a value")
        };
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(field(set), "0000000000000000", "{set}");
        }
        assert_eq!((field("Uid"), field("NoNewPrivs"), field("Seccomp")), ("65534", "1", "2"));
        // MemoryDenyWriteExecute: it has nothing that this would take away.
        let maps = std::fs::read_to_string(proc.join("maps")).expect("it runs");
        let writable_code =
            maps.lines().find(|line| line.split(' ').nth(1).is_some_and(|mode| mode.starts_with("rwx")));
        assert_eq!(writable_code, None);
        drop(harness);
        traced.kill();

        // The filter bites: a program that asks for more than is allowed is killed.
        let calls = allowed_calls(&Unit::read("traced.service"))?.join(",");
        let run = |families: &str, program: &[&str]| {
            let mut command = Command::new("setpriv");
            command
                .args(["--no-new-privs"])
                .arg(beside_this_test("esatto-sandbox"))
                .args([&calls, families])
                .args(program);
            command.output().expect("setpriv can be started").status
        };
        assert!(run("1", &["true"]).success());
        assert_eq!(run("1", &["unshare", "--uts", "true"]).signal(), Some(Signal::SYS.as_raw()));
        let tcp = ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/1"];
        assert_eq!(run("1", &tcp).signal(), Some(Signal::SYS.as_raw()));
        assert_ne!(run("1,2", &tcp).signal(), Some(Signal::SYS.as_raw()));
        Ok(())
    });
}
