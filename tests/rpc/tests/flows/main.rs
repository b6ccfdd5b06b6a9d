//! Cases of `docs/spec/ipc-tracing.md` §14: traced calls between processes, judged by Perfetto's
//! trace processor. One recording has nearly all of them, each with programs of its own. It is made
//! once with our service, and once with Perfetto's.

#![allow(missing_docs, reason = "tests")]

mod calls;
mod failures;
mod own_connection;
mod peers;
mod sessions;
mod wire;

use std::collections::HashMap;
use std::path::Path;
use std::sync::LazyLock;

use esatto_rpc_tests::flows::{Recorded, Scenario, Stage, Way};
use esatto_rpc_tests::wiretap::{Conversation, Mode};
use esatto_tests::{Implementation, Skip, skip};

use calls::*;
use failures::*;
use peers::*;

const APP: &str = env!("CARGO_BIN_EXE_esatto-bindings-app");

/// The cases, and the tests that judge them.
const CASES: &[(u32, &str, &str)] = &[
    (1, HERE, "a_unary_call"),
    (1, HERE, "a_call_with_a_callback"),
    (2, HERE, "a_one_way_call"),
    (3, HERE, "many_requests_have_ids_of_their_own"),
    (3, "crates/ipc/src/hooks.rs", "a_million_requests_have_different_ids"),
    (4, HERE, "equal_request_ids_of_two_clients"),
    (5, HERE, "a_stream_whose_client_is_slow"),
    (5, HERE, "a_stream_whose_end_is_no_message"),
    (6, HERE, "a_host_that_knows_no_seed"),
    (6, "tests/rpc/tests/flows/wire.rs", "perfettos_service_does_not_notice_the_attribute"),
    (6, "tests/rpc/tests/flows/wire.rs", "perfettos_command_does_not_notice_the_attribute"),
    (7, HERE, "a_lost_connection_ends_pending_calls"),
    (7, HERE, "a_lost_connection_ends_the_slices_of_waiting_threads"),
    (8, HERE, "a_cancelled_call"),
    (8, HERE, "a_late_reply"),
    (9, HERE, "a_reply_of_a_worker"),
    (10, "tests/rpc/tests/flows/sessions.rs", "a_session_that_starts_in_mid_call_has_no_end_without_begin"),
    (10, "tests/rpc/tests/flows/sessions.rs", "a_session_that_ends_in_mid_call_leaves_the_next_one_no_end"),
    (11, "tests/rpc/tests/flows/sessions.rs", "without_the_category_nothing_is_recorded"),
    (11, "crates/rpc-trace/tests/no_allocation.rs", "a_call_that_is_not_recorded_does_not_allocate_for_hooks"),
    (11, "crates/ipc/tests/compiled_out.rs", "categories_add_no_machine_code_without_the_feature"),
    (12, HERE, "programs_without_an_adapter"),
    (13, "tests/rpc/tests/flows/own_connection.rs", "an_idle_program_sends_no_more_with_an_adapter"),
    (13, HERE, "calls_of_the_internal_thread"),
    (14, HERE, "a_relay_between_client_and_server"),
    (14, HERE, "a_relay_that_tells_the_client"),
    (15, HERE, "request_7_of_both_ends"),
    (15, "crates/ipc/src/hooks.rs", "a_million_requests_have_different_ids"),
    (16, "tests/rpc/tests/calls.rs", "our_header_comes_before_traceparent"),
    (16, "tests/rpc/tests/calls.rs", "each_attempt_of_a_retried_call_has_its_own_arrow"),
    (17, HERE, "the_vectors_of_the_specification"),
    (17, "crates/ipc/src/hooks.rs", "flow_ids_are_those_of_the_specification"),
    (18, "tests/rpc/tests/flows/sessions.rs", "of_two_sessions_only_that_with_the_category_has_the_calls"),
];

/// A test of the shared recording.
const HERE: &str = "";

/// Makes two tests of a function that judges a scenario of the shared recording.
macro_rules! judged {
    ($($name:ident: $scenario:literal),* $(,)?) => {
        const JUDGED: &[&str] = &[$(stringify!($name)),*];

        $(mod $name {
            use esatto_tests::Implementation;

            #[test]
            fn ours() {
                super::judge(Implementation::Ours, $scenario, super::$name);
            }

            #[test]
            fn theirs() {
                super::judge(Implementation::Theirs, $scenario, super::$name);
            }
        })*
    };
}

judged! {
    a_unary_call: "unary",
    a_call_with_a_callback: "callback",
    a_one_way_call: "one_way",
    many_requests_have_ids_of_their_own: "many",
    equal_request_ids_of_two_clients: "two",
    a_stream_whose_client_is_slow: "stream",
    a_stream_whose_end_is_no_message: "open_stream",
    a_stream_that_is_cancelled: "stream_cancel",
    a_host_that_knows_no_seed: "old",
    a_lost_connection_ends_pending_calls: "lost_callbacks",
    a_lost_connection_ends_the_slices_of_waiting_threads: "lost_threads",
    calls_of_several_threads_that_time_out: "failed_threads",
    a_cancelled_call: "cancel",
    a_late_reply: "late_reply",
    a_reply_of_a_worker: "worker",
    programs_without_an_adapter: "no_adapter",
    calls_of_the_internal_thread: "internal_thread",
    a_relay_between_client_and_server: "relay",
    a_relay_that_tells_the_client: "relayed",
    request_7_of_both_ends: "peers",
    the_vectors_of_the_specification: "vectors",
    calls_before_and_after_a_fork: "fork",
    failures_are_told: "failures",
    a_call_that_times_out: "timeout",
    a_service_that_is_missing: "missing_service",
    descriptors_are_told: "descriptor",
}

/// The shared recording.
struct Played {
    recorded: Recorded,
    /// Bytes between clients and servers.
    conversations: HashMap<&'static str, Vec<Conversation>>,
}

fn play(service: Implementation) -> Result<Played, Skip> {
    let stage = Stage::new(APP, service)?.recording(&["app", "bindings", "rpc"]);
    let mut conversations = HashMap::new();
    for (name, way) in [
        ("unary", Way::Tap(Mode::Pass)),
        ("callback", Way::Tap(Mode::Pass)),
        ("one_way", Way::Tap(Mode::Pass)),
        ("many", Way::Direct),
        ("stream", Way::Tap(Mode::Pass)),
        ("open_stream", Way::Tap(Mode::Pass)),
        ("stream_cancel", Way::Direct),
        ("lost_callbacks", Way::Direct),
        ("lost_threads", Way::Direct),
        ("failed_threads", Way::Direct),
        ("cancel", Way::Tap(Mode::Pass)),
        ("late_reply", Way::Tap(Mode::StripExtensions)),
        ("worker", Way::Direct),
        ("internal_thread", Way::Direct),
        ("fork", Way::Direct),
        ("vectors", Way::Direct),
        ("failures", Way::Direct),
        ("timeout", Way::Direct),
        ("missing_service", Way::Direct),
        ("descriptor", Way::Direct),
    ] {
        conversations.insert(name, stage.play(name, way));
    }
    let none: &[&str] = &[];
    for (name, scenario, way, environment) in [
        ("old", "traced_conversation", Way::Tap(Mode::StripExtensions), [none, none]),
        ("relay", "unary", Way::Relay, [none, none]),
        ("no_adapter", "unary", Way::Direct, [&["WITHOUT_ADAPTER"][..], none]),
        ("no_adapters", "unary", Way::Direct, [&["WITHOUT_ADAPTER"][..], &["WITHOUT_ADAPTER"]]),
        ("tt", "traced_conversation", Way::Tap(Mode::Pass), [none, none]),
        ("tp", "traced_conversation", Way::Tap(Mode::Pass), [none, &["WITHOUT_CATEGORY"]]),
        ("pt", "plain_conversation", Way::Tap(Mode::Pass), [none, none]),
        ("pp", "plain_conversation", Way::Tap(Mode::Pass), [none, &["WITHOUT_CATEGORY"]]),
    ] {
        conversations.insert(name, stage.play_with(name, scenario, way, environment));
    }
    play_two(&stage);
    play_peers(&stage);
    play_relayed(&stage);
    let recorded = stage.finish();
    let (begins, ends) = recorded.begins_and_ends();
    let open: Vec<_> = recorded.events().iter().filter(|event| event.dur < 0).collect();
    assert_eq!(begins, ends, "each slice has one end; without end: {open:#?}");
    Ok(Played { recorded, conversations })
}

/// Two clients call one server at the same time.
fn play_two(stage: &Stage) {
    let mut server = stage.start("two.server", &["server", "two.sock"]);
    let mut clients = [("two.first", "first_of_two"), ("two.second", "second_of_two")]
        .map(|(name, scenario)| stage.start(name, &["client", scenario, "two.sock", "two.sock"]));
    clients.iter_mut().for_each(esatto_tests::Program::wait_ok);
    server.wait_ok();
}

/// Two processes call each other at the same time.
fn play_peers(stage: &Stage) {
    let mut one = stage.start("peers.one", &["peer", "one.sock", "another.sock"]);
    let mut another = stage.start("peers.another", &["peer", "another.sock", "one.sock"]);
    one.wait_ok();
    another.wait_ok();
}

/// A client calls through `esatto relay`, which tells the server for whom it forwards.
fn play_relayed(stage: &Stage) {
    let mut server = stage.start("relayed.server", &["server", "127.0.0.1:0"]);
    let log = server.log();
    let port = log.trim().rsplit(' ').next().and_then(|port| port.parse().ok()).expect("a port");
    let _relay = stage.harness.relay(port, &stage.harness.path("relayed.sock"));
    let control = format!("127.0.0.1:{port}");
    stage.start("relayed.client", &["client", "unary", "relayed.sock", &control]).wait_ok();
    server.wait_ok();
}

static OURS: LazyLock<Result<Played, Skip>> = LazyLock::new(|| play(Implementation::Ours));
static THEIRS: LazyLock<Result<Played, Skip>> = LazyLock::new(|| play(Implementation::Theirs));

fn played(service: Implementation) -> Result<&'static Played, Skip> {
    let played = match service {
        Implementation::Ours => LazyLock::force(&OURS),
        Implementation::Theirs => LazyLock::force(&THEIRS),
    };
    played.as_ref().map_err(Clone::clone)
}

fn judge(service: Implementation, scenario: &str, check: fn(&Scenario<'_>, &Played)) {
    skip(|| {
        let played = played(service)?;
        check(&played.recorded.scenario(scenario), played);
        Ok(())
    });
}

#[test]
fn every_case_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let spec = std::fs::read_to_string(root.join("docs/spec/ipc-tracing.md")).expect("the spec");
    let (_, cases) = spec.split_once("## 14 Test cases").expect("the section");
    let cases: Vec<u32> = cases.lines().filter_map(|line| line.split_once(". ")?.0.parse().ok()).collect();
    assert_eq!(cases, (1..=18).collect::<Vec<_>>());
    for case in cases {
        assert!(CASES.iter().any(|(number, ..)| *number == case), "case {case} has no test");
    }
    for (case, file, test) in CASES {
        let is_there = if *file == HERE {
            JUDGED.contains(test)
        } else {
            let text = std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            text.contains(&format!("fn {test}("))
        };
        assert!(is_there, "case {case}: there is no test {test}");
    }
}
