//! The disk is full: the session ends, the consumer gets the reason, and the packets in the file
//! are whole. Perfetto's own service ends the session in silence, with half a packet at the end of
//! the file.

use std::path::Path;
use std::process::Command;

use esatto_tests::raw::RawProducer;
use esatto_tests::tiny_disk::{DISK_BYTES, TinyDisk};
use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Peer, Program, Signal, esatto_bin, skip, wait_until, wire};
use rustix::process::{Resource, Rlimit};

/// About a megabyte.
const WORKLOAD: Workload = Workload { threads: 2, rounds: 2000, pause_us: 100 };

fn config(path: &str) -> String {
    format!(
        r#"
buffers {{ size_kb: 16384 }}
write_into_file: true
file_write_period_ms: 100
flush_period_ms: 100
{path}
data_sources {{ config {{
  name: "track_event"
  track_event_config {{ enabled_categories: "rendering" }}
}} }}
"#
    )
}

#[test]
fn but_not_the_service_with_its_metrics_file() {
    skip(|| {
        let harness = Harness::new();
        let disk = TinyDisk::mount(harness.path("disk"))?;
        let _ = std::fs::write(disk.path().join("filler"), vec![0; 2 * usize::try_from(DISK_BYTES).expect("small")]);
        let metrics = disk.path().join("esatto.prom");
        let mut service = harness.service_with(Implementation::Ours, |command| {
            command.arg("--metrics-file").arg(&metrics);
        });
        let warning = format!("cannot write the metrics file {}: No space left on device", metrics.display());
        service.wait_for_log(&warning);
        Ok(())
    });
}

#[test]
fn of_a_path() {
    skip(|| {
        let harness = Harness::new();
        let disk = TinyDisk::mount(harness.path("disk"))?;
        let trace = disk.path().join("trace");
        let service = harness.service(Implementation::Ours);
        // A consumer that only waits for the end.
        let mut consumer = wire::Peer::consumer(&harness);
        let text = config(&format!("output_path: \"{}\"", trace.display()));
        let pool = prost_reflect::DescriptorPool::decode(esatto_schema::FILE_DESCRIPTOR_SET).expect("our own schema");
        let message = pool.get_message_by_name("perfetto.protos.TraceConfig").expect("a message of it");
        let config = esatto_text_format::parse(&message, text).expect("a config");
        let request = wire::Proto::new().bytes(1, config);
        let (call, frame) = consumer.call_frame("EnableTracing", &request);
        consumer.send(&frame);
        let mut application = harness.application(Implementation::Ours, WORKLOAD);
        let reply = consumer.reply_to(call);
        let error = String::from_utf8_lossy(wire::last(&reply.body, 3).expect("an error text")).into_owned();
        let expected = format!("the trace file {} cannot be written: No space left on device", trace.display());
        assert!(error.starts_with(&expected), "{error}");
        assert!(service.log().contains(&expected), "{}", service.log());
        assert_whole(&trace);
        application.wait_ok();
        Ok(())
    });
}

#[test]
fn of_a_descriptor_that_theirs_brought() {
    skip(|| {
        Peer::Official.require()?;
        let harness = Harness::new();
        let disk = TinyDisk::mount(harness.path("disk"))?;
        let _service = harness.service(Implementation::Ours);
        let mut recording = harness.record(Implementation::Theirs, "disk/trace", &config(""));
        let mut application = harness.application(Implementation::Ours, WORKLOAD);
        wait_until("the recording ends", || (!recording.program.is_running()).then_some(()));
        let log = recording.program.log();
        assert!(log.contains("the trace file cannot be written: No space left on device"), "{log}");
        assert_whole(&disk.path().join("trace"));
        application.wait_ok();
        Ok(())
    });
}

#[test]
fn that_reads_the_buffers() {
    skip(|| {
        let harness = Harness::new();
        let disk = TinyDisk::mount(harness.path("disk"))?;
        let _service = harness.service(Implementation::Ours);
        let application = harness.application_command(Implementation::Ours, WORKLOAD);
        let mut command = harness.command(esatto_bin());
        command.args(["record", "-o", "disk/trace"]).arg(application.get_program()).args(application.get_args());
        let mut record = harness.start("esatto-record", &mut command);
        assert!(!record.wait().success());
        assert!(record.log().contains("No space left on device"), "{}", record.log());
        let trace = disk.path().join("trace");
        assert_whole(&trace);
        let info = Command::new(esatto_bin()).arg("info").arg(trace).output().expect("it runs");
        let info = String::from_utf8_lossy(&info.stdout);
        assert!(info.contains("\nEnd       missing: ") && info.contains("end_missing"), "{info}");
        Ok(())
    });
}

#[test]
fn of_snapshots() {
    skip(|| {
        let harness = Harness::new();
        let disk = TinyDisk::mount(harness.path("disk"))?;
        let _service = harness.service(Implementation::Ours);
        let triggers =
            "trigger_config { trigger_mode: CLONE_SNAPSHOT trigger_timeout_ms: 60000 triggers { name: \"x\" } }";
        let config = format!("buffers {{ size_kb: 256 }} data_sources {{ config {{ name: \"y\" }} }} {triggers}");
        let mut recording = harness.record(Implementation::Ours, "disk/trace", &config);
        harness.wait_for_sessions(1);
        // No page is left.
        let filler = vec![0; usize::try_from(DISK_BYTES).expect("small")];
        std::fs::write(disk.path().join("filler"), filler).expect_err("the disk is full");
        let mut producer = RawProducer::connect(&harness, "trigger");
        assert!(producer.call("ActivateTriggers", &wire::Proto::new().bytes(1, "x")).success);
        recording.program.wait_for_log("No space left on device");
        recording.program.signal(Signal::INT);
        assert_eq!(recording.program.wait().code(), Some(1));
        let log = recording.program.log();
        assert!(log.contains("nothing is kept: make room") && log.contains("No complete snapshot"), "{log}");
        assert!(!log.contains("bytes are kept") && !disk.path().join("trace.0").exists(), "{log}");
        Ok(())
    });
}

/// The limit of the size of files has a signal of its own, which would kill the program.
#[test]
fn or_a_limit_of_the_size_of_files_does() {
    const LIMIT: u64 = 1 << 20;
    let limit = |program: &Program| {
        let pid = rustix::process::Pid::from_raw(i32::try_from(program.pid()).expect("a number"));
        let limit = Rlimit { current: Some(LIMIT), maximum: Some(LIMIT) };
        rustix::process::prlimit(pid, Resource::Fsize, limit).expect("a limit");
    };
    let harness = Harness::new();
    let service = harness.service(Implementation::Ours);
    let data_source = "data_sources { config { name: \"track_event\" track_event_config { \
                       enabled_categories: \"rendering\" } } } buffers { size_kb: 16384 }";
    // Its consumer writes its file.
    let mut other = harness.record(Implementation::Ours, "other", data_source);
    let streaming = format!("{data_source} write_into_file: true file_write_period_ms: 100");
    let mut by_service = harness.record(Implementation::Ours, "by-service", &streaming);
    limit(&service);
    let many = Workload { rounds: 20_000, pause_us: 0, ..WORKLOAD };
    let mut application = harness.application(Implementation::Ours, many);
    wait_until("the recording ends", || (!by_service.program.is_running()).then_some(()));
    let log = by_service.program.log();
    assert!(log.contains("the trace file cannot be written: File too large"), "{log}");
    assert!(std::fs::metadata(by_service.trace()).expect("a trace").len() <= LIMIT);
    application.wait_ok();
    // The service and the other session are still there.
    limit(&other.program);
    other.program.signal(Signal::INT);
    assert_eq!(other.program.wait().code(), Some(1));
    let log = other.program.log();
    assert!(log.contains("File too large") && log.contains("bytes are kept"), "{log}");
}

/// The file takes up most of the disk, and nothing is in it but packets.
fn assert_whole(trace: &Path) {
    let bytes = std::fs::read(trace).expect("a trace");
    assert!(bytes.len() as u64 > DISK_BYTES / 2 && bytes.len() as u64 <= DISK_BYTES, "{} bytes", bytes.len());
    let mut end = 0;
    for packet in wire::all(&bytes, 1) {
        assert!(!wire::fields(packet).is_empty());
        end = packet.as_ptr() as usize - bytes.as_ptr() as usize + packet.len();
    }
    assert_eq!(end, bytes.len(), "it ends with a packet");
}
