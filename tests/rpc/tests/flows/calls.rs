//! Calls that succeed.

use std::collections::HashSet;

use esatto_rpc_tests::flows::{Arrow, Scenario, mix};

use crate::Played;

/// Returns the id of the request's flow, by the seed that was on the wire.
fn base(played: &Played, scenario: &str, request: u64) -> u64 {
    let seed = played.conversations[scenario][0].seed();
    assert_ne!(seed, 0, "the client tells a seed");
    mix(seed, 2 * request)
}

/// Checks that all arrows have this id, and that the flow has so many events and one end.
fn assert_flow(scenario: &Scenario<'_>, played: &Played, base: u64, events: usize) {
    assert!(scenario.arrows.iter().all(|arrow| arrow.flow == base), "{base:x}: {scenario:?}");
    assert_eq!(played.recorded.ends_of(base), (events, 1), "events and ends of {base:x}");
}

pub(crate) fn a_unary_call(scenario: &Scenario<'_>, played: &Played) {
    scenario.assert_events(&["client Shop.Get", "server Shop.Get", "client Shop.Get reply"]);
    scenario.assert_arrows(&["client Shop.Get → server Shop.Get", "server Shop.Get → client Shop.Get reply"]);
    // The bind is request 1.
    assert_flow(scenario, played, base(played, "unary", 2), 2);
    let [client, server] = [scenario.only("client Shop.Get"), scenario.only("server Shop.Get")];
    let reply = scenario.only("client Shop.Get reply");
    assert!(client.ts <= server.ts && server.end() <= reply.ts && reply.ts <= client.end(), "{scenario:?}");
    assert_eq!([client.depth, reply.depth, server.depth], [0, 1, 0]);
    for (event, role, status) in [(client, "client", ""), (server, "server", ""), (reply, "client", "ok")] {
        assert_eq!([event.arg("role"), event.arg("status")], [role, status]);
        assert_eq!([event.arg("request_id"), event.arg("bytes"), event.category.as_str()], ["2", "2", "bindings"]);
    }
    for (event, peer) in [("client rpc connect", client), ("server rpc connect", server)] {
        let connect = scenario.only(event);
        assert!(connect.ts <= peer.ts && !connect.arg("peer_pid").is_empty(), "{connect:?}");
    }
}

pub(crate) fn a_call_with_a_callback(scenario: &Scenario<'_>, played: &Played) {
    let [request, reply] = scenario.all("client Shop.Get")[..] else { panic!("{scenario:?}") };
    scenario.assert_arrows(&["client Shop.Get → server Shop.Get", "server Shop.Get → client Shop.Get"]);
    assert!(request.end() <= reply.ts);
    assert_flow(scenario, played, base(played, "callback", 2), 2);
    let pending = scenario.only("client Shop.Get (rpc)");
    assert!(request.ts <= pending.ts && reply.ts <= pending.end());
    assert_eq!([pending.arg("status"), reply.arg("bytes")], ["ok", "2"]);
}

pub(crate) fn a_one_way_call(scenario: &Scenario<'_>, played: &Played) {
    scenario.assert_events(&["client Shop.Note", "server Shop.Note"]);
    scenario.assert_arrows(&["client Shop.Note → server Shop.Note"]);
    // The bind is request 1; request 2 was not traced.
    assert_flow(scenario, played, base(played, "one_way", 3), 1);
    assert_eq!(scenario.only("server Shop.Note").arg("bytes"), "2");
}

pub(crate) fn many_requests_have_ids_of_their_own(scenario: &Scenario<'_>, _: &Played) {
    assert_eq!(scenario.arrows.len(), 5000);
    let mut seen = [HashSet::new(), HashSet::new(), HashSet::new()];
    for Arrow { from, to, flow } in &scenario.arrows {
        assert_eq!((from.title(), to.title()), ("client Shop.Note".to_owned(), "server Shop.Note".to_owned()));
        assert_eq!(from.arg("request_id"), to.arg("request_id"));
        let is_new = [from.arg("request_id").to_owned(), format!("{flow}"), to.ts.to_string()];
        for (seen, value) in seen.iter_mut().zip(is_new).take(2) {
            assert!(seen.insert(value.clone()), "{value} is there twice");
        }
    }
}

pub(crate) fn equal_request_ids_of_two_clients(scenario: &Scenario<'_>, played: &Played) {
    let mut expected = Vec::new();
    let mut bases = HashSet::new();
    for client in ["first", "second"] {
        let call = scenario.only(&format!("{client} Shop.Hold"));
        assert_eq!(call.arg("request_id"), "2");
        let arrow = scenario.arrows.iter().find(|arrow| arrow.from.title() == call.title()).expect("an arrow");
        // Each client sends a message of another size.
        assert_eq!(arrow.to.arg("bytes"), call.arg("bytes"));
        assert_eq!(played.recorded.ends_of(arrow.flow), (3, 1));
        bases.insert(arrow.flow);
        expected.extend([
            format!("{client} Shop.Hold → server Shop.Hold"),
            "server Shop.Hold → server Shop.Hold reply".to_owned(),
            format!("server Shop.Hold reply → {client} Shop.Hold reply"),
        ]);
        let reply = scenario.arrows.iter().find(|arrow| arrow.to.title() == format!("{client} Shop.Hold reply"));
        assert_eq!(reply.expect("an arrow").flow, arrow.flow);
    }
    assert_eq!(bases.len(), 2, "different ids");
    scenario.assert_arrows(&expected.iter().map(String::as_str).collect::<Vec<_>>());
    let [one, two] = ["first Shop.Hold", "second Shop.Hold"].map(|title| scenario.only(title));
    assert!(one.ts < two.end() && two.ts < one.end(), "at the same time");
}

/// Checks the arrows of replies: number n of the server leads to number n of the client.
fn assert_replies(scenario: &Scenario<'_>, played: &Played, base: u64, method: &str) {
    let sent = scenario.all(&format!("server {method} reply"));
    let taken: Vec<_> = scenario.all(&format!("client {method}")).into_iter().skip(1).collect();
    assert!(sent.len() >= 3 && taken.len() == 3, "{scenario:?}");
    assert!(sent.last().map(|reply| reply.ts) <= taken.first().map(|reply| reply.ts), "the client is slow");
    for (n, (sent, taken)) in (1..).zip(sent.iter().zip(&taken)) {
        let is_it = |arrow: &&Arrow<'_>| arrow.from.ts == sent.ts && arrow.to.ts == taken.ts;
        let arrow = scenario.arrows.iter().find(is_it).expect("an arrow to the reply of the same number");
        assert_eq!(arrow.flow, mix(base, n));
        assert_eq!(played.recorded.ends_of(arrow.flow), (1, 1));
    }
    for pair in taken.windows(2) {
        assert!(pair[0].end() <= pair[1].ts, "one after the other");
    }
    let between_replies = format!("server {method} reply → server {method} reply");
    assert!(!scenario.arrow_titles().contains(&between_replies));
}

pub(crate) fn a_stream_whose_client_is_slow(scenario: &Scenario<'_>, played: &Played) {
    // Requests 1 and 2 are the bind and an untraced call.
    let base = base(played, "stream", 3);
    assert_replies(scenario, played, base, "Shop.Watch");
    scenario.assert_arrows(&[
        "client Shop.Watch → server Shop.Watch",
        "server Shop.Watch reply → client Shop.Watch",
        "server Shop.Watch reply → client Shop.Watch",
        "server Shop.Watch reply → client Shop.Watch",
        // The last reply also ends the flow of the request.
        "server Shop.Watch → client Shop.Watch",
    ]);
    assert_eq!(played.recorded.ends_of(base), (2, 1));
    let pending = scenario.only("client Shop.Watch (rpc)");
    assert_eq!(pending.arg("status"), "ok");
    assert!(scenario.all("server Shop.Watch reply").iter().all(|reply| reply.ts < pending.end()));
}

pub(crate) fn a_stream_whose_end_is_no_message(scenario: &Scenario<'_>, played: &Played) {
    let base = base(played, "open_stream", 3);
    assert_replies(scenario, played, base, "Shop.List");
    scenario.assert_arrows(&[
        "client Shop.List → server Shop.List",
        "server Shop.List reply → client Shop.List",
        "server Shop.List reply → client Shop.List",
        "server Shop.List reply → client Shop.List",
        "server Shop.List → client Shop.List reply",
    ]);
    assert_eq!(played.recorded.ends_of(base), (2, 1));
    assert_eq!(scenario.only("client Shop.List reply").arg("status"), "ok");
    assert_eq!(scenario.only("client Shop.List (rpc)").arg("status"), "ok");
}

pub(crate) fn a_stream_that_is_cancelled(scenario: &Scenario<'_>, _: &Played) {
    let end = scenario.only("client Shop.Watch reply");
    assert_eq!(end.arg("status"), "cancelled");
    assert_eq!(scenario.only("client Shop.Watch (rpc)").arg("status"), "cancelled");
    scenario.assert_arrows(&[
        "client Shop.Watch → server Shop.Watch",
        "server Shop.Watch reply → client Shop.Watch",
        "server Shop.Watch → client Shop.Watch reply",
    ]);
}

pub(crate) fn a_reply_of_a_worker(scenario: &Scenario<'_>, _: &Played) {
    scenario.assert_arrows(&[
        "client Shop.Hold → server Shop.Hold",
        "server Shop.Hold → server Shop.Hold reply",
        "server Shop.Hold reply → client Shop.Hold reply",
    ]);
    assert_eq!(scenario.only("server Shop.Hold").thread, "rpc");
    assert_eq!(scenario.only("server Shop.Hold reply").thread, "worker");
}

pub(crate) fn descriptors_are_told(scenario: &Scenario<'_>, _: &Played) {
    assert_eq!(scenario.only("client Shop.Get").arg("fds"), "1");
    assert_eq!(scenario.only("server Shop.Get").arg("fds"), "1");
    assert_eq!(scenario.only("client Shop.Get reply").arg("fds"), "");
}
