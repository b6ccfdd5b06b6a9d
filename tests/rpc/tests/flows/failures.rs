//! Calls that fail, are cancelled, or whose connection is lost.

use esatto_rpc_tests::flows::Scenario;

use crate::Played;

pub(crate) fn failures_are_told(scenario: &Scenario<'_>, _: &Played) {
    let [first, second] = scenario.all("server Shop.Refuse")[..] else { panic!("{scenario:?}") };
    assert_eq!([first.arg("status"), second.arg("status")], ["error"; 2]);
    let reply = scenario.only("client Shop.Refuse reply");
    assert_eq!([reply.arg("status"), reply.arg("code"), reply.arg("bytes")], ["error", "NOT_FOUND", "0"]);
    assert_eq!(scenario.only("client Shop.Refuse (rpc)").arg("status"), "error");
    scenario.assert_arrows(&[
        "client Shop.Refuse → server Shop.Refuse",
        "server Shop.Refuse → client Shop.Refuse reply",
        "client Shop.Refuse → server Shop.Refuse",
        "server Shop.Refuse → client Shop.Refuse",
    ]);
}

pub(crate) fn a_call_that_times_out(scenario: &Scenario<'_>, played: &Played) {
    let reply = scenario.only("client Shop.Hold reply");
    assert_eq!(reply.arg("status"), "timeout");
    let call = scenario.only("client Shop.Hold");
    assert!(call.ts <= reply.ts && reply.ts <= call.end());
    // The server may see the call only after that, if the machine is busy.
    assert!(scenario.all("server Shop.Hold").len() == 1);
    assert_eq!(played.recorded.ends_of(scenario.arrows[0].flow), (2, 1));
}

pub(crate) fn calls_of_several_threads_that_time_out(scenario: &Scenario<'_>, _: &Played) {
    assert_threads(scenario, "timeout");
}

pub(crate) fn a_lost_connection_ends_the_slices_of_waiting_threads(scenario: &Scenario<'_>, _: &Played) {
    assert_threads(scenario, "disconnected");
}

/// Checks that each of three threads has a slice of its call, and that its end is in it.
fn assert_threads(scenario: &Scenario<'_>, status: &str) {
    for thread in ["first", "second", "third"] {
        let of_thread = |title: &str| -> Vec<_> {
            scenario.all(title).into_iter().filter(|event| event.thread == thread).collect()
        };
        let [call] = of_thread("client Shop.Hold")[..] else { panic!("{thread}: {scenario:?}") };
        let [reply] = of_thread("client Shop.Hold reply")[..] else { panic!("{thread}: {scenario:?}") };
        assert_eq!([reply.arg("status"), reply.arg("request_id")], [status, call.arg("request_id")]);
        assert_eq!([call.depth, reply.depth], [0, 1]);
        assert!(call.ts <= reply.ts && reply.ts <= call.end());
    }
}

pub(crate) fn a_lost_connection_ends_pending_calls(scenario: &Scenario<'_>, played: &Played) {
    let pending = scenario.all("client Shop.Hold (rpc)");
    assert_eq!(pending.iter().map(|call| call.arg("status")).collect::<Vec<_>>(), ["disconnected"; 2]);
    scenario.assert_arrows(&[
        "client Shop.Hold → server Shop.Hold",
        "client Shop.Hold → server Shop.Hold",
        "server Shop.Hold → client Shop.Hold reply",
        "server Shop.Hold → client Shop.Hold reply",
    ]);
    for arrow in &scenario.arrows {
        assert_eq!(played.recorded.ends_of(arrow.flow), (2, 1));
    }
    for reply in scenario.all("client Shop.Hold reply") {
        assert_eq!(reply.arg("status"), "disconnected");
    }
}

pub(crate) fn a_cancelled_call(scenario: &Scenario<'_>, played: &Played) {
    scenario.assert_events(&[
        "client Shop.Hold",
        "client Shop.Hold (rpc)",
        "server Shop.Hold",
        "client Shop.Hold reply",
    ]);
    assert_cancelled(scenario, played);
    scenario.assert_arrows(&["client Shop.Hold → server Shop.Hold", "server Shop.Hold → client Shop.Hold reply"]);
    assert_eq!(played.recorded.ends_of(scenario.arrows[0].flow), (2, 1));
}

/// The server does not learn of the cancel, and answers.
pub(crate) fn a_late_reply(scenario: &Scenario<'_>, played: &Played) {
    scenario.assert_events(&[
        "client Shop.Hold",
        "client Shop.Hold (rpc)",
        "server Shop.Hold",
        "client Shop.Hold reply",
        // This is the server's. The client has no event of it.
        "server Shop.Hold reply",
    ]);
    assert_cancelled(scenario, played);
}

fn assert_cancelled(scenario: &Scenario<'_>, _: &Played) {
    let (pending, end) = (scenario.only("client Shop.Hold (rpc)"), scenario.only("client Shop.Hold reply"));
    assert_eq!([pending.arg("status"), end.arg("status")], ["cancelled"; 2]);
    for event in scenario.events.iter().filter(|event| event.process.ends_with(".client")) {
        assert!(event.end() <= pending.end(), "after the cancel: {event:?}");
    }
}

pub(crate) fn a_service_that_is_missing(scenario: &Scenario<'_>, _: &Played) {
    // A blocking call that asks for the service; one that knows; one with a callback; a one-way
    // call.
    scenario.assert_events(&[
        "client Cellar.Open",
        "server rpc rejected",
        "client Cellar.Open reply",
        "client Cellar.Open",
        "client Cellar.Open reply",
        "client Cellar.Open",
        "client Cellar.Open (rpc)",
        "client Cellar.Open reply",
        "client Cellar.Knock",
        "client Cellar.Knock reply",
    ]);
    for reply in scenario.events.iter().filter(|event| event.name.ends_with(" reply")) {
        assert_eq!(reply.arg("status"), "error");
    }
    scenario.assert_arrows(&[
        "client Cellar.Open → client Cellar.Open reply",
        "client Cellar.Open → client Cellar.Open reply",
        "client Cellar.Open → client Cellar.Open reply",
        "client Cellar.Knock → client Cellar.Knock reply",
    ]);
}
