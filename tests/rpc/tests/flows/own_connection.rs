//! The connection by which the SDK talks to its service.

use std::time::Duration;

use esatto::{Backend, Session, SessionConfig};
use esatto_ipc::{Address, Channel};
use esatto_rpc_tests::flows::{Recorded, Stage};
use esatto_rpc_tests::shop::{item, plain};
use esatto_rpc_tests::wiretap::{Mode, Wiretap};
use esatto_tests::{Implementation, skip};

use crate::APP;

/// Returns the bytes that a program sends to its service for each flush, when it has nothing to
/// do; and its trace, with all categories.
fn idle(stage: &Stage, name: &str, change: impl FnOnce(&mut std::process::Command)) -> (Vec<usize>, Recorded) {
    let path = |kind: &str| stage.harness.path(format!("{name}-{kind}"));
    let tap = Wiretap::start(&path("tap"), &stage.harness.producer_socket(), Mode::Pass);
    let backend = Backend::Socket(stage.harness.consumer_socket().display().to_string());
    let config = SessionConfig::new().categories(["*"]).tags(["slow", "debug"]);
    let session = Session::start(backend, config).expect("starts");
    let socket = format!("{name}-server");
    let mut server = stage.start_with(&format!("{name}.server"), &["server", &socket], |command| {
        command.env("PERFETTO_PRODUCER_SOCK_NAME", path("tap"));
        change(command);
    });
    let sent = || tap.conversations().iter().map(|conversation| conversation.sent.len()).sum::<usize>();
    let flush = || {
        let before = sent();
        session.flush(None).wait().expect("is answered");
        sent() - before
    };
    // The first ones hand over descriptions.
    for _ in 0..3 {
        flush();
    }
    let flushes = (0..20).map(|_| flush()).collect();
    let channel = Channel::connect(&Address::Path(path("server")), Duration::from_secs(60)).expect("listens");
    plain::shop::Client::new(&channel).quit(&item(0)).send().expect("is sent");
    server.wait_ok();
    let trace = stage.harness.write(&format!("{name}-trace"), session.stop().expect("stops"));
    (flushes, Recorded::read(&trace))
}

#[test]
fn an_idle_program_sends_no_more_with_an_adapter() {
    skip(|| {
        let stage = Stage::new(APP, Implementation::Ours)?;
        let (with, recorded) = idle(&stage, "with", |_| ());
        assert_eq!(recorded.events().len(), 0, "events about the SDK's own calls: {recorded:?}");
        let (without, recorded) = idle(&stage, "without", |command| {
            command.env("WITHOUT_ADAPTER", "1");
        });
        assert_eq!(recorded.events().len(), 0, "{recorded:?}");
        assert!(with.iter().all(|bytes| *bytes == with[0]) && with[0] > 0, "traffic grows: {with:?}");
        assert_eq!(with, without);
        Ok(())
    });
}
