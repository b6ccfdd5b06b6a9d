//! Sessions that start or stop in mid-call, and sessions without the category.

use std::time::Duration;

use esatto_ipc::{Address, Channel};
use esatto_rpc_tests::flows::{Recorded, Stage, Way};
use esatto_rpc_tests::shop::{item, plain};
use esatto_tests::{Implementation, Program, skip};

use crate::APP;

/// Programs with two calls that the server holds.
struct MidCall {
    server: Program,
    client: Program,
}

impl MidCall {
    /// Starts the programs, without waiting for a recording unless there is one.
    fn start(stage: &Stage, is_recorded: bool) -> Self {
        let at_once = |command: &mut std::process::Command| {
            if !is_recorded {
                command.env("AT_ONCE", "1");
            }
        };
        let server = stage.start_with("mid.server", &["server", "mid.sock"], at_once);
        let mut client = stage.start_with("mid.client", &["client", "mid_call", "mid.sock", "mid.sock"], at_once);
        client.wait_for_log("held");
        Self { server, client }
    }

    /// Lets the server answer as soon as both programs are recorded.
    fn go_on(mut self, stage: &Stage) {
        let address = Address::Path(stage.harness.path("mid.sock"));
        let channel = Channel::connect(&address, Duration::from_secs(60)).expect("the server listens");
        plain::shop::Client::new(&channel).signal(&item(0)).send().expect("is sent");
        self.client.wait_ok();
        self.server.wait_ok();
    }
}

/// Checks that only the call is there that began in the session.
fn assert_only_get(recorded: &Recorded) {
    let scenario = recorded.scenario("mid");
    scenario.assert_events(&["client Shop.Get", "server Shop.Get", "client Shop.Get reply"]);
    assert_eq!(recorded.begins_and_ends(), (2, 2), "no end without begin");
}

#[test]
fn a_session_that_starts_in_mid_call_has_no_end_without_begin() {
    skip(|| {
        let stage = Stage::new(APP, Implementation::Ours)?;
        let programs = MidCall::start(&stage, false);
        let mut recording = stage.record("trace", &["bindings"]);
        stage.harness.wait_for_sessions(1);
        programs.go_on(&stage);
        assert_only_get(&Recorded::read(&stage.harness.stop(&mut recording)));
        Ok(())
    });
}

#[test]
fn a_session_that_ends_in_mid_call_leaves_the_next_one_no_end() {
    skip(|| {
        let stage = Stage::new(APP, Implementation::Ours)?;
        let mut first = stage.record("first", &["app", "bindings"]);
        let programs = MidCall::start(&stage, true);
        let first = Recorded::read(&first.stop());
        let mut second = stage.record("second", &["bindings"]);
        stage.harness.wait_for_sessions(1);
        programs.go_on(&stage);
        assert_only_get(&Recorded::read(&stage.harness.stop(&mut second)));
        // The calls were open when the session ended.
        let open = first.events().iter().filter(|event| event.dur == -1);
        assert_eq!(open.map(|event| event.title()).collect::<Vec<_>>().len(), 2, "{first:?}");
        Ok(())
    });
}

#[test]
fn of_two_sessions_only_that_with_the_category_has_the_calls() {
    skip(|| {
        let stage = Stage::new(APP, Implementation::Ours)?;
        let mut recordings = [stage.record("with", &["bindings"]), stage.record("without", &["app"])];
        stage.harness.wait_for_sessions(2);
        let _: Vec<_> = stage.play("in_two_sessions", Way::Direct);
        let [with, without] = recordings.each_mut().map(|recording| Recorded::read(&stage.harness.stop(recording)));
        let scenario = with.scenario("in_two_sessions");
        scenario.assert_arrows(&[
            "client Shop.Get → server Shop.Get",
            "server Shop.Get → client Shop.Get reply",
            "client Shop.Note → server Shop.Note",
        ]);
        without.scenario("in_two_sessions").assert_events(&["client calls"]);
        assert_eq!(without.begins_and_ends(), (0, 0));
        Ok(())
    });
}

#[test]
fn without_the_category_nothing_is_recorded() {
    skip(|| {
        let stage = Stage::new(APP, Implementation::Ours)?.recording(&["app"]);
        let off: &[&str] = &["OFF"];
        let _: Vec<_> = stage.play_with("off", "in_two_sessions", Way::Direct, [off, off]);
        let recorded = stage.finish();
        recorded.scenario("off").assert_events(&["client calls"]);
        assert_eq!(recorded.events().len(), 1, "{recorded:?}");
        Ok(())
    });
}
