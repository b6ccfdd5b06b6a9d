//! §5: what the client reads, and what it changes before it sends a config.

use crate::rows::{REFUSED, Row, SHORT, compare, output_of, run_ours, same};
use esatto_protozero::Owned as _;
use esatto_schema::TraceConfig;
use esatto_schema::trace_config::BufferConfig;
use esatto_tests::{Harness, Implementation, Peer};

const FILES: &[(&str, &str)] =
    &[("c.cfg", SHORT), ("empty.cfg", ""), ("refused.cfg", REFUSED), ("binary.cfg", "\u{1}\u{2}\u{3}")];

same! {
    empty_file: ["-c", "empty.cfg", "-o", "t"] => 1;
    empty_text_file: ["-c", "empty.cfg", "--txt", "-o", "t"] => 1;
    bytes_that_are_no_config: ["-c", "binary.cfg", "-o", "t"] => 1;
}

#[test]
fn text_without_txt_gets_a_hint() {
    compare(Row { args: &["-c", "c.cfg", "-o", "t"], files: FILES, ..Row::default() }, |ours, theirs| {
        for ran in [ours, theirs] {
            assert!(ran.stderr.contains("--txt"), "{}", ran.stderr);
        }
    });
}

/// Encoded configs may have fields that only the service knows.
#[test]
fn unknown_fields_reach_the_service() {
    esatto_tests::skip(|| {
        Peer::Official.require()?;
        let mut config = TraceConfig { duration_ms: Some(200), ..TraceConfig::default() };
        config.buffers.push(BufferConfig { size_kb: Some(64), ..BufferConfig::default() });
        let mut encoded = config.encode();
        // Field 900 with the number 5.
        encoded.extend([0xa0, 0x38, 5]);
        let mut echoes = Vec::new();
        for client in [Implementation::Ours, Implementation::Theirs] {
            let harness = Harness::with_perfetto(client);
            let _service = harness.service(Implementation::Ours);
            harness.write("c.cfg", &encoded);
            let output = output_of(&mut harness.perfetto(&["-c", "c.cfg", "-o", "t"]), "");
            assert!(output.status.success(), "{output:?}");
            let trace = std::fs::read(harness.path("t")).expect("the trace");
            echoes.push(trace.windows(3).any(|bytes| bytes == [0xa0, 0x38, 5]));
        }
        assert_eq!(echoes, [true, true]);
        Ok(())
    });
}

#[test]
fn the_client_overwrites_what_it_knows_better() {
    const CONFIG: &str = "duration_ms: 200 buffers { size_kb: 64 } enable_extra_guardrails: true \
                          statsd_metadata { triggering_alert_id: 3 } statsd_logging: STATSD_LOGGING_ENABLED";
    let row = Row { args: &["-c", "c.cfg", "--txt", "-o", "t"], files: &[("c.cfg", CONFIG)], ..Row::default() };
    compare(row, |ours, theirs| {
        assert_eq!(ours.config("t"), theirs.config("t"));
        assert!(ours.config("t").contains("enable_extra_guardrails: false"));
    });
}

#[test]
fn a_given_id_of_the_trace_is_kept() {
    const CONFIG: &str = "duration_ms: 200 buffers { size_kb: 64 } trace_uuid_msb: 17 trace_uuid_lsb: 0";
    let ran =
        run_ours(Row { args: &["-c", "c.cfg", "--txt", "-o", "t"], files: &[("c.cfg", CONFIG)], ..Row::default() });
    let trace = ran.harness.path("t");
    let info = std::process::Command::new(esatto_tests::esatto_bin()).arg("info").arg(trace).output().expect("it runs");
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(info.contains("UUID      00000000-0000-0011-0000-000000000000"), "{info}");
}
