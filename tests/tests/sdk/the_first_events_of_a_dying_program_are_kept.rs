//! A program that dies right after its first events had no time to tell the service which thread
//! wrote them. They are in the trace nevertheless.

use std::time::Duration;

use esatto_tests::{Harness, Implementation, Peer, skip, tp};

esatto::categories! { static APP = "dying"; }

const ROLE: &str = "ESATTO_TEST_DIES";
const PROGRAMS: usize = 6;
const EVENTS: i64 = 1000;

#[test]
fn of_six_programs() {
    if std::env::var_os(ROLE).is_some() {
        die();
    }
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let config = "buffers { size_kb: 16384 } data_sources { config { name: \"track_event\" \
                      track_event_config { enabled_categories: \"dying\" } } }";
        let mut recording = harness.record(Implementation::Ours, "trace", config);
        harness.wait_for_sessions(1);
        let test = std::thread::current().name().expect("libtest names it").to_owned();
        for _ in 0..PROGRAMS {
            let mut command = harness.command(std::env::current_exe().expect("this program"));
            let mut program = harness.start("program", command.args([&*test, "--exact"]).env(ROLE, ""));
            assert!(!program.wait().success());
        }
        let trace = harness.stop(&mut recording);
        let rows = tp::rows(&trace, "select count(*) as n from slice where name = 'last words'");
        assert_eq!(rows[0].int("n"), EVENTS * PROGRAMS as i64);
        Ok(())
    });
}

fn die() -> ! {
    let tracing = esatto::Tracing::builder().system().categories(CATEGORIES).start().expect("starts");
    assert!(tracing.wait_until_enabled(&APP, Duration::from_secs(60)), "a session records");
    for _ in 0..EVENTS {
        esatto::instant!(APP, "last words");
    }
    std::process::abort();
}
