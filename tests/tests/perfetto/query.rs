//! §12: `--query` shows the same lines as Perfetto's command.

use crate::rows::output_of;
use esatto_protozero::Owned as _;
use esatto_schema::TracingServiceState;
use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Peer, wait_until};

const ENDLESS: Workload = Workload { threads: 1, rounds: 1_000_000, pause_us: 2000 };

fn shown(harness: &Harness, args: &[&str]) -> String {
    let output = output_of(&mut harness.perfetto(args), "");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    // Theirs is always red.
    text.replace("\u{1b}[31m", "").replace("\u{1b}[0m", "").replace("\u{1b}[32m", "")
}

#[test]
fn all_columns() {
    esatto_tests::skip(|| {
        Peer::Official.require()?;
        for service in [Implementation::Ours, Implementation::Theirs] {
            let theirs = Harness::with_perfetto(Implementation::Theirs);
            let mut ours = Harness::join(theirs.folder().to_owned());
            ours.set_perfetto(Implementation::Ours);
            let _service = theirs.service(service);
            let _applications = [Implementation::Ours, Implementation::Theirs]
                .map(|implementation| theirs.application(implementation, ENDLESS));
            let _probes = theirs.probes(Implementation::Theirs);
            theirs.wait_for_producers(3);
            theirs.wait_for_data_source("track_event");
            let config = "unique_session_name: \"a name\" duration_ms: 1234567 buffers { size_kb: 64 } \
                          buffers { size_kb: 32 } data_sources { config { name: \"track_event\" } }";
            let _recording = theirs.record(Implementation::Theirs, "t", config);
            theirs.wait_for_sessions(1);
            for args in [&["--query"][..], &["--query", "--long"]] {
                // A data source may still be on its way to the service.
                wait_until("both show the same", || {
                    let (theirs, ours) = (shown(&theirs, args), shown(&ours, args));
                    (theirs == ours).then_some(())
                });
            }
            // Theirs encodes the fields in another order.
            let raw = |harness: &Harness| {
                let output = output_of(&mut harness.perfetto(&["--query-raw"]), "");
                TracingServiceState::decode(&output.stdout).expect("a state")
            };
            assert_eq!(raw(&theirs), raw(&ours));
        }
        Ok(())
    });
}

#[test]
fn colours_only_on_a_terminal() {
    let harness = Harness::with_perfetto(Implementation::Ours);
    let _service = harness.service(Implementation::Ours);
    let output = output_of(&mut harness.perfetto(&["--query"]), "");
    assert!(!output.stdout.contains(&0x1b));
}
