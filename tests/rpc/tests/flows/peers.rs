//! Programs of which one does not trace, calls in both directions, relays, and ids of the
//! specification.

use std::collections::HashSet;

use esatto_rpc_tests::flows::Scenario;

use crate::Played;

/// Neither side learns of the other's seed.
pub(crate) fn a_host_that_knows_no_seed(scenario: &Scenario<'_>, played: &Played) {
    assert_ne!(played.conversations["old"][0].seed(), 0, "the client sends one");
    for arrow in &scenario.arrows {
        assert!(arrow.from.process == "old.client" && arrow.to.process == "old.client", "{}", arrow.title());
    }
    for title in ["client Shop.Get", "server Shop.Get", "server Shop.Watch", "client Shop.Note", "server Shop.Note"] {
        assert!(!scenario.all(title).is_empty(), "{title} is missing: {scenario:?}");
    }
    assert_eq!(scenario.only("client Shop.Refuse reply").arg("status"), "error");
}

pub(crate) fn programs_without_an_adapter(scenario: &Scenario<'_>, played: &Played) {
    // The client's calls worked. It has no events, and the server's slice has no arrow.
    scenario.assert_events(&["server Shop.Get"]);
    scenario.assert_arrows(&[]);
    played.recorded.unchecked("no_adapters").assert_events(&[]);
}

/// Only the server's side is recorded.
pub(crate) fn calls_of_the_internal_thread(scenario: &Scenario<'_>, _: &Played) {
    scenario.assert_events(&["server Shop.Get"]);
    scenario.assert_arrows(&[]);
}

pub(crate) fn a_relay_between_client_and_server(scenario: &Scenario<'_>, _: &Played) {
    scenario.assert_events(&["client Shop.Get", "server Shop.Get", "client Shop.Get reply"]);
    scenario.assert_arrows(&["client Shop.Get → server Shop.Get", "server Shop.Get → client Shop.Get reply"]);
    // Both talk to the relay.
    let [client, server] = ["client rpc connect", "server rpc connect"].map(|title| scenario.only(title));
    assert_eq!(client.arg("peer_pid"), server.arg("peer_pid"));
}

/// The relay of the tracing service, which knows no seed, and forwards over TCP.
pub(crate) fn a_relay_that_tells_the_client(scenario: &Scenario<'_>, _: &Played) {
    scenario.assert_arrows(&["client Shop.Get → server Shop.Get", "server Shop.Get → client Shop.Get reply"]);
    let [client, server] = ["client rpc connect", "server rpc connect"].map(|title| scenario.only(title));
    assert_eq!(server.arg("peer_pid"), client.pid, "{scenario:?}");
}

/// The child of a fork records nothing until it connects to the service. A call of its parent goes
/// on.
pub(crate) fn calls_before_and_after_a_fork(scenario: &Scenario<'_>, _: &Played) {
    scenario.assert_events(&[
        "client Shop.Hold",
        "client Shop.Hold (rpc)",
        "server Shop.Hold",
        "server Shop.Get",
        "client Shop.Get",
        "server Shop.Get",
        "client Shop.Get reply",
        "server Shop.Hold reply",
        "client Shop.Hold",
    ]);
    scenario.assert_arrows(&[
        "client Shop.Hold → server Shop.Hold",
        "server Shop.Hold → server Shop.Hold reply",
        "server Shop.Hold reply → client Shop.Hold",
        "client Shop.Get → server Shop.Get",
        "server Shop.Get → client Shop.Get reply",
    ]);
    let pids = |title| scenario.all(title).iter().map(|event| event.pid.as_str()).collect::<HashSet<_>>();
    assert_eq!([pids("client Shop.Hold").len(), pids("client Shop.Get").len()], [1, 1]);
    assert!(pids("client Shop.Hold").is_disjoint(&pids("client Shop.Get")), "{scenario:?}");
    let connects: Vec<_> = scenario.all("server rpc connect").iter().map(|event| event.arg("peer_pid")).collect();
    assert_eq!(connects.len(), 2, "the parent's and the child's: {connects:?}");
}

/// A connection has calls of one direction only. So these are two connections.
pub(crate) fn request_7_of_both_ends(scenario: &Scenario<'_>, played: &Played) {
    let mut expected = Vec::new();
    for (here, there) in [("one", "another"), ("another", "one")] {
        expected.extend([
            format!("{here} Shop.Hold → {there} Shop.Hold"),
            format!("{there} Shop.Hold → {there} Shop.Hold reply"),
            format!("{there} Shop.Hold reply → {here} Shop.Hold"),
        ]);
    }
    scenario.assert_arrows(&expected.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(scenario.arrows.iter().all(|arrow| arrow.from.arg("request_id") == "7"), "{scenario:?}");
    let flows: HashSet<u64> = scenario.arrows.iter().map(|arrow| arrow.flow).collect();
    assert_eq!(flows.len(), 2);
    for flow in flows {
        assert_eq!(played.recorded.ends_of(flow), (3, 1));
    }
    let [one, another] = ["one Shop.Hold (rpc)", "another Shop.Hold (rpc)"].map(|title| scenario.only(title));
    assert!(one.ts < another.end() && another.ts < one.end(), "at the same time");
}

/// The client is a program without bindings: it sends seeds, and records ids, by hand.
pub(crate) fn the_vectors_of_the_specification(scenario: &Scenario<'_>, _: &Played) {
    scenario.assert_arrows(&[
        "client 0xd573529b34a1d093 → server Shop.Watch",
        "server Shop.Watch reply → client 0x77a6486dff4e0f94",
        "server Shop.Watch reply → client 0xd27a6a416ad6b4e8",
        "client 0xa2d419334c4667ec → server Shop.Get",
        "client 0xbeeb8da1658eec67 → server Shop.Get",
        // A result of 0 is replaced.
        "client 0x1 → server Shop.Get",
    ]);
    for arrow in &scenario.arrows {
        let vector = if arrow.from.category == "app" { arrow.from } else { arrow.to };
        assert_eq!(vector.name, format!("{:#x}", arrow.flow));
    }
}
