//! Calls of HTTP and gRPC between two processes: what the trace processor sees of them.

#![allow(missing_docs, reason = "tests")]

use std::collections::HashSet;

use esatto_rpc_tests::recording::{Trace, record};
use esatto_tests::{Implementation, skip};

const APP: &str = env!("CARGO_BIN_EXE_esatto-rpc-app");

/// Plays a scenario with our service, and judges the trace.
fn play(scenario: &str, check: impl Fn(&Trace)) {
    skip(|| {
        let trace = record(APP, scenario, Implementation::Ours)?;
        trace.assert_lanes_read_right();
        check(&trace);
        Ok(())
    });
}

/// Arrows between the processes, from event to event.
fn arrows(trace: &Trace) -> Vec<[String; 2]> {
    trace.texts(
        ["coalesce(from_role || ' ', '') || from_name", "coalesce(to_role || ' ', '') || to_name"],
        "from arrows order by from_id, to_id",
    )
}

fn pairs(list: &[[&str; 2]]) -> Vec<[String; 2]> {
    list.iter().map(|pair| pair.map(str::to_owned)).collect()
}

/// Side, name and end of each call.
fn calls(trace: &Trace) -> Vec<[String; 3]> {
    trace.texts(["role", "name", "status"], "from calls order by role, ts")
}

fn triples(list: &[[&str; 3]]) -> Vec<[String; 3]> {
    list.iter().map(|triple| triple.map(str::to_owned)).collect()
}

fn assert_unary(trace: &Trace) {
    let name = "test.Echo/Unary";
    assert_eq!(calls(trace), triples(&[["client", name, "ok"], ["server", name, "ok"]]));
    assert_eq!(
        arrows(trace),
        pairs(&[
            ["client test.Echo/Unary", "server test.Echo/Unary"],
            ["server test.Echo/Unary", "reply"],
            ["reply", "reply"]
        ])
    );
    let [row] = &trace.rows(
        "select count(distinct process) as processes, count(distinct track) as tracks,
            sum(extract_arg(args, 'debug.messages_sent')) as sent,
            sum(extract_arg(args, 'debug.messages_received')) as received,
            (select count(*) from events where name like 'message %') as messages from calls",
    )[..] else {
        panic!("one row")
    };
    assert_eq!((row.int("processes"), row.int("tracks")), (2, 2));
    assert_eq!((row.int("sent"), row.int("received"), row.int("messages")), (2, 2, 0));
    let nested =
        "select * from calls as client join calls as server on client.role = 'client' and server.role = 'server'
        where client.ts > server.ts or client.ts + client.dur < server.ts";
    assert!(trace.rows(nested).is_empty());
}

#[test]
fn a_unary_call_is_a_slice_on_each_side_and_three_arrows() {
    play("unary", assert_unary);
}

#[test]
fn perfettos_own_service_records_the_same() {
    skip(|| {
        assert_unary(&record(APP, "unary", Implementation::Theirs)?);
        Ok(())
    });
}

/// Arrows between messages: number, sender's side, and whether both ends have this number.
fn message_arrows(trace: &Trace) -> Vec<[String; 2]> {
    trace.texts(
        ["sender.track", "extract_arg(sender.args, 'debug.number')"],
        "from arrows join events as sender on from_id = sender.id join events as receiver on to_id = receiver.id
            where from_name = 'message sent' and to_name = 'message received'
            and extract_arg(sender.args, 'debug.number') = extract_arg(receiver.args, 'debug.number')
            and extract_arg(sender.args, 'debug.bytes') = extract_arg(receiver.args, 'debug.bytes')
            and sender.process != receiver.process
            order by sender.track, extract_arg(sender.args, 'debug.number')",
    )
}

#[test]
fn each_message_of_a_server_stream_has_an_arrow() {
    play("server_stream", |trace| {
        let expected = [["rpc server", "1"], ["rpc server", "2"], ["rpc server", "3"]];
        assert_eq!(message_arrows(trace), pairs(&expected));
        assert_eq!(trace.rows("select * from arrows where from_name like 'message %'").len(), 3, "no other arrow");
    });
}

#[test]
fn each_message_of_a_client_stream_has_an_arrow() {
    play("client_stream", |trace| {
        let expected = [["rpc client", "1"], ["rpc client", "2"], ["rpc client", "3"]];
        assert_eq!(message_arrows(trace), pairs(&expected));
    });
}

#[test]
fn both_directions_of_a_call_have_their_own_arrows() {
    play("bidi", |trace| {
        let expected = [["rpc client", "1"], ["rpc client", "2"], ["rpc server", "1"], ["rpc server", "2"]];
        assert_eq!(message_arrows(trace), pairs(&expected));
        let counts = trace.texts(
            ["extract_arg(args, 'debug.messages_sent')", "extract_arg(args, 'debug.messages_received')"],
            "from calls",
        );
        assert_eq!(counts, pairs(&[["2", "2"], ["2", "2"]]));
    });
}

#[test]
fn a_method_that_does_not_exist_is_unimplemented() {
    play("names", |trace| {
        let known = ["test.Echo/Unary", "ok"];
        let invented = ["test.Echo/Invented", "unimplemented"];
        for role in ["client", "server"] {
            let calls: Vec<_> = calls(trace).into_iter().filter(|call| call[0] == role).collect();
            let expected =
                [known, invented, known, invented, known, invented].map(|[name, status]| [role, name, status]);
            assert_eq!(calls, triples(&expected));
        }
    });
}

#[test]
fn a_refused_call_has_its_status_and_only_on_request_its_text() {
    play("refused", |trace| {
        let name = "test.Echo/Refuse";
        let client = ["client", name, "permission_denied"];
        let server = ["server", name, "permission_denied"];
        assert_eq!(calls(trace), triples(&[client, client, server, server]));
        let texts = trace
            .texts(["role", "coalesce(extract_arg(args, 'debug.status_message'), '')"], "from calls order by role, ts");
        assert_eq!(texts, pairs(&[["client", ""], ["client", "a%20secret%20reason"], ["server", ""], ["server", ""]]));
    });
}

#[test]
fn a_call_that_is_dropped_is_cancelled_on_both_sides() {
    play("cancel", |trace| {
        let expected = [
            ["client", "test.Echo/Sleep", "cancelled"],
            ["client", "test.Echo/Endless", "cancelled"],
            ["server", "test.Echo/Sleep", "cancelled"],
            ["server", "test.Echo/Endless", "cancelled"],
        ];
        assert_eq!(calls(trace), triples(&expected));
    });
}

#[test]
fn a_call_that_takes_too_long_exceeds_its_deadline_on_both_sides() {
    play("deadline", |trace| {
        let name = "test.Echo/Sleep";
        assert_eq!(
            calls(trace),
            triples(&[["client", name, "deadline_exceeded"], ["server", name, "deadline_exceeded"]])
        );
        let timeouts = trace.texts(["role", "extract_arg(args, 'debug.timeout_us')"], "from calls order by role");
        assert_eq!(timeouts, pairs(&[["client", "100000"], ["server", "100000"]]));
    });
}

#[test]
fn a_call_that_reaches_no_server_is_an_error() {
    play("server_down", |trace| {
        assert_eq!(calls(trace), triples(&[["client", "test.Echo/Unary", "error"]]));
        assert!(arrows(trace).is_empty());
    });
}

#[test]
fn calls_of_http_have_a_method_and_a_route() {
    play("http", |trace| {
        let ends = trace.texts(
            ["role", "name", "status", "extract_arg(args, 'debug.http_status')"],
            "from calls order by role, ts",
        );
        let expected = [
            ["client", "GET", "ok", "200"],
            ["client", "HEAD", "ok", "200"],
            ["client", "POST", "ok", "204"],
            ["client", "GET", "error", "500"],
            ["client", "GET", "ok", "200"],
            ["server", "GET /users/{id}", "ok", "200"],
            ["server", "HEAD /users/{id}", "ok", "200"],
            ["server", "POST /users/{id}", "ok", "204"],
            ["server", "GET /broken", "error", "500"],
            ["server", "GET", "ok", "200"],
        ];
        let expected: Vec<_> = expected.iter().map(|row| row.map(str::to_owned)).collect();
        assert_eq!(ends, expected);
        let secrets = "select * from args where string_value like '%secret%' or string_value like '%users/7%'";
        assert!(trace.rows(secrets).is_empty());
        assert!(trace.rows("select * from slice where name like '%/7%'").is_empty());
    });
}

#[test]
fn each_attempt_of_a_retried_call_has_its_own_arrow() {
    play("retry", |trace| {
        let between = "from arrows where from_role = 'client' and to_role = 'server'";
        assert_eq!(trace.texts(["from_id", "to_id"], between).len(), 2);
        let ends = trace.texts(["role", "extract_arg(args, 'debug.http_status')"], "from calls order by role, ts");
        assert_eq!(ends, pairs(&[["client", "503"], ["client", "200"], ["server", "503"], ["server", "200"]]));
        // The logical call encloses both.
        let outside = "select * from calls where role = 'client' and not exists (
            select * from events as outer_call where outer_call.name = 'with retries'
            and outer_call.ts <= calls.ts and outer_call.ts + outer_call.dur >= calls.ts)";
        assert!(trace.rows(outside).is_empty());
    });
}

#[test]
fn each_attempt_of_a_hedged_call_has_its_own_arrow() {
    play("hedge", |trace| {
        let between = "from arrows where from_role = 'client' and to_role = 'server'";
        assert_eq!(trace.texts(["from_id", "to_id"], between).len(), 2);
        let ends: HashSet<_> = trace.texts(["role", "status"], "from calls").into_iter().collect();
        let expected = [["client", "ok"], ["client", "cancelled"], ["server", "ok"], ["server", "cancelled"]];
        assert_eq!(ends, pairs(&expected).into_iter().collect());
    });
}

#[test]
fn our_header_comes_before_traceparent() {
    play("headers", |trace| {
        let joined = trace.texts(
            ["server.name", "coalesce(client.name, '')"],
            "from calls as server left join arrows on to_id = server.id and from_role = 'client'
                left join calls as client on client.id = from_id where server.role = 'server' order by server.ts",
        );
        let expected = [
            ["GET /users/{id}", ""],
            ["PUT", "PUT"],
            ["DELETE", ""],
            // The same parent as the one before, because the test says so.
            ["PATCH", "PATCH"],
            ["OPTIONS", "OPTIONS"],
            ["TRACE", "TRACE"],
        ];
        assert_eq!(joined, pairs(&expected));
        let correlations = trace.texts(
            [
                "role || ' ' || name",
                "coalesce(extract_arg(args, 'correlation_id_str'), extract_arg(args, 'correlation_id'), '')",
            ],
            "from calls order by role, ts",
        );
        println!("{correlations:#?}");
        let with =
            |call: &str| correlations.iter().filter(|[name, id]| name == call && id.contains("4bf92f35")).count();
        assert_eq!(with("client PUT") + with("server PUT"), 0);
        for call in
            ["server DELETE", "client PATCH", "server PATCH", "client OPTIONS", "server OPTIONS", "server TRACE"]
        {
            assert_eq!(with(call), 1, "{call}");
        }
    });
}

#[test]
fn headers_and_names_of_strangers_are_ignored() {
    play("hostile", |trace| {
        assert!(arrows(trace).iter().all(|[from, _]| from.starts_with("server") || from == "reply"));
        let names = trace.texts(["name", "status"], "from calls where role = 'server' order by ts");
        let mut expected = vec![["GET", "ok"]; 8];
        expected.push(["HTTP", "ok"]);
        expected.push(["gRPC", "unknown"]);
        assert_eq!(names, pairs(&expected));
    });
}

#[test]
fn only_sampled_calls_are_recorded_if_that_is_asked_for() {
    play("sampled", |trace| {
        let calls = trace.texts(["role", "name"], "from calls order by role, ts");
        let expected = [["client", "DELETE"], ["server", "GET"], ["server", "PUT"], ["server", "DELETE"]];
        assert_eq!(calls, pairs(&expected));
    });
}

#[test]
fn many_calls_at_once_share_lanes_without_overlap() {
    play("many", |trace| {
        let [row] = &trace.rows(
            "select count(*) as calls, count(distinct track_id) as lanes, count(distinct track) as tracks from calls",
        )[..] else {
            panic!("one row")
        };
        assert_eq!((row.int("calls"), row.int("tracks")), (400, 2));
        let arrows = "from arrows where from_role = 'client' and to_role = 'server'";
        assert_eq!(trace.texts(["from_id", "to_id"], arrows).len(), 200);
    });
}

#[test]
fn a_client_without_slices_adds_arrows_to_the_slices_of_the_program() {
    play("without_slices", |trace| {
        let call = trace.texts(
            ["calls.dur", "parent.name"],
            "from calls join events as parent on calls.parent_id = parent.id where calls.role = 'client'",
        );
        assert_eq!(call, pairs(&[["0", "span of the program"]]));
        let between = "from arrows where from_role = 'client' and to_role = 'server'";
        assert_eq!(trace.texts(["from_name", "to_name"], between), pairs(&[["test.Echo/Unary", "test.Echo/Unary"]]));
    });
}

#[test]
fn a_span_of_tracing_and_its_call_are_one_slice() {
    play("tracing", |trace| {
        let lifetimes =
            "from events where dur > 0 and track not like 'rpc %' and parent_id is null and name = 'request'";
        assert!(!trace.texts(["name", "track"], lifetimes).is_empty());
        let slices = "from events where dur > 0 and track = 'rpc client'";
        assert!(trace.texts(["name", "track"], slices).is_empty());
        let call = trace.texts(
            ["calls.dur", "parent.name"],
            "from calls join events as parent on calls.parent_id = parent.id where calls.role = 'client'",
        );
        assert_eq!(call, pairs(&[["0", "request"]]));
        let between = "from arrows where from_role = 'client' and to_role = 'server'";
        assert_eq!(trace.texts(["from_name", "to_name"], between).len(), 1);
    });
}
