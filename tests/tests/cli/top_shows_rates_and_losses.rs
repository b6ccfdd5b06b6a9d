//! `esatto top` shows what sessions record, and what they lose.

use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Signal, Terminal, esatto_bin};
use serde_json::Value;
use std::process::Output;

const ENDLESS: Workload = Workload { threads: 2, rounds: 1_000_000, pause_us: 100 };

fn top(harness: &Harness, args: &[&str]) -> Output {
    harness.command(esatto_bin()).arg("top").args(args).output().expect("it runs")
}

#[test]
fn a_ring_that_is_full_shows_how_much_it_holds() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let empty = top(&harness, &["--once", "-i", "1ms"]);
    assert_eq!(String::from_utf8_lossy(&empty.stdout), "No session runs.\n");
    let _application = harness.application(Implementation::Ours, ENDLESS);
    harness.wait_for_data_source("track_event");
    let config = "unique_session_name: \"ring\" buffers { size_kb: 64 fill_policy: RING_BUFFER } \
                  data_sources { config { name: \"track_event\" } } flush_period_ms: 100";
    let _recording = harness.record(Implementation::Theirs, "trace", config);
    harness.wait_for_sessions(1);
    esatto_tests::wait_until("the ring is overwritten", || {
        let output = top(&harness, &["--once", "--json", "-i", "200ms", "ring"]);
        let look: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let session = &look["sessions"][0];
        let loss = session["losses"].as_array()?.iter().find(|loss| loss["what"] == "chunks_overwritten")?;
        assert_eq!((&loss["is_normal"], &session["buffers"][0]["size"]), (&true.into(), &65536.into()));
        (session["buffers"][0]["overwritten_per_s"].as_u64()? > 0).then_some(())
    });
    let output = top(&harness, &["--once", "-i", "200ms"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("session 1 ring: started") && text.contains("buffers { size_kb: 128 }"), "{text}");
    let unknown = top(&harness, &["--once", "nobody"]);
    assert!(!unknown.status.success());
}

/// Records endless events with a config, and waits for a loss of this name in what `top` shows.
fn wait_for_loss(config: &str, what: &str) -> Value {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let _application = harness.application(Implementation::Ours, ENDLESS);
    harness.wait_for_data_source("track_event");
    let config = format!("{config} data_sources {{ config {{ name: \"track_event\" }} }} flush_period_ms: 100");
    let _recording = harness.record(Implementation::Ours, "trace", &config);
    harness.wait_for_sessions(1);
    esatto_tests::wait_until(&format!("{what} is shown"), || {
        let output = top(&harness, &["--once", "--json", "-i", "100ms"]);
        let look: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let losses = look["sessions"][0]["losses"].as_array()?.clone();
        losses.into_iter().find(|loss| loss["what"] == what)
    })
}

#[test]
fn a_ring_that_is_too_small_for_its_file_is_a_loss() {
    let config = "buffers { size_kb: 64 } write_into_file: true file_write_period_ms: 60000 \
                  write_flush_mode: WRITE_FLUSH_DISABLED";
    let loss = wait_for_loss(config, "chunks_overwritten");
    assert_eq!(loss["is_normal"], false, "{loss}");
    let advice = loss["advice"].as_str().expect("a text");
    assert!(advice.contains("`buffers { size_kb: 128 }`") && advice.contains("file_write_period_ms"), "{advice}");
}

#[test]
fn a_full_buffer_that_discards_is_a_loss() {
    let loss = wait_for_loss("buffers { size_kb: 64 fill_policy: DISCARD }", "chunks_discarded");
    assert_eq!(loss["is_normal"], false, "{loss}");
    let advice = loss["advice"].as_str().expect("a text");
    assert!(advice.contains("fill policy DISCARD") && advice.contains("size_kb: 128"), "{advice}");
}

/// Starts `esatto top` on a terminal.
fn on_terminal(harness: &Harness, columns: u16) -> Terminal {
    let mut command = harness.command(esatto_bin());
    Terminal::start(command.args(["top", "-i", "50ms"]).env("LC_ALL", "C"), columns)
}

/// Clears the screen and goes to its begin.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

#[test]
fn a_terminal_is_painted_again_until_ctrl_c() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let _application = harness.application(Implementation::Ours, ENDLESS);
    harness.wait_for_data_source("track_event");
    let mut terminal = on_terminal(&harness, 100);
    let seen = terminal.wait_for("No session runs.", 0);
    let config = "unique_session_name: \"ring\" buffers { size_kb: 64 fill_policy: RING_BUFFER } \
                  data_sources { config { name: \"track_event\" } }";
    let _recording = harness.record(Implementation::Ours, "trace", config);
    let seen = terminal.wait_for("session 1 ring: started", seen);
    let seen = terminal.wait_for(CLEAR, seen);
    let _ = terminal.wait_for("session 1 ring: started", seen);
    terminal.type_interrupt();
    let (status, shown) = terminal.wait();
    assert!(status.success() && shown.starts_with(CLEAR) && shown.ends_with('\n') && shown.is_ascii(), "{shown:?}");
}

#[test]
fn a_terminal_of_20_columns_cuts_lines() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let _recording = harness.record(
        Implementation::Ours,
        "trace",
        "unique_session_name: \"long-name\" \
        buffers { size_kb: 64 } data_sources { config { name: \"track_event\" } }",
    );
    harness.wait_for_sessions(1);
    let mut terminal = on_terminal(&harness, 20);
    let _ = terminal.wait_for("session 1 long-name:", 0);
    terminal.type_interrupt();
    let (status, shown) = terminal.wait();
    assert!(status.success(), "{shown}");
    assert!(shown.replace(CLEAR, "").lines().all(|line| line.len() <= 20), "{shown:?}");
}

#[test]
fn a_service_that_ends_is_told_below_the_view() {
    let harness = Harness::new();
    let mut service = harness.service(Implementation::Ours);
    let mut terminal = on_terminal(&harness, 100);
    let _ = terminal.wait_for("No session runs.", 0);
    service.kill();
    let (status, shown) = terminal.wait();
    assert_eq!(status.code(), Some(1));
    assert!(shown.contains("esatto: lost the connection to the tracing service: "), "{shown}");
}

/// A script that follows it ends it with a signal.
#[test]
fn it_goes_on_as_json_until_a_signal() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let mut command = harness.command(esatto_bin());
    let mut program = harness.start("top", command.args(["top", "--json", "-i", "20ms"]));
    esatto_tests::wait_until("it has looked three times", || (program.log().lines().count() > 3).then_some(()));
    program.signal(Signal::INT);
    program.wait_ok();
}

#[test]
fn a_service_of_perfetto_tells_less() {
    esatto_tests::skip(|| {
        esatto_tests::Peer::Official.require()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Theirs);
        let config = "buffers { size_kb: 64 } data_sources { config { name: \"track_event\" } }";
        let _recording = harness.record(Implementation::Theirs, "trace", config);
        harness.wait_for_sessions(1);
        let output = top(&harness, &["--once", "-i", "1ms"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains("only Esatto's service tells"), "{text}");
        Ok(())
    });
}
