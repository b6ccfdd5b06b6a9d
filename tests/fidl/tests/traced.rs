//! Traced calls between two threads, as Perfetto's trace processor reads them.

#![allow(missing_docs, reason = "a test")]

use std::fs;
use std::path::Path;
use std::thread;

use esatto::{Backend, Session, Tracing};
use esatto_fidl::{Responder, endpoints};
use esatto_fidl_tests::test_echo::echo::{Client, Methods, method, serve};
use esatto_fidl_tests::test_echo::*;
use esatto_fidl_tests::test_shapes::{Choice, Options};
use esatto_tests::{Harness, Peer, skip, tp};

/// Calls of each kind.
const CALLS: i32 = 120;

/// Server that divides at once, and that answers `Later` on another thread.
struct Answers;

impl Methods for Answers {
    fn divide(&mut self, request: EchoDivideRequest, responder: Responder<method::Divide>) {
        let quotient = request.dividend.checked_div(request.divisor);
        let result = quotient.map(|quotient| EchoDivideResponse { quotient }).ok_or(DivisionError::ByZero);
        responder.send(&result).unwrap();
    }

    fn later(&mut self, _: Choice, responder: Responder<method::Later>) {
        thread::spawn(move || responder.send(&Options::default()).unwrap());
    }

    fn echo_string(&mut self, _: EchoEchoStringRequest, _: Responder<method::EchoString>) {}
    fn send_string(&mut self, _: EchoSendStringRequest) {}
    fn ping(&mut self, _: Responder<method::Ping>) {}
    fn forget(&mut self) {}
    fn pass(&mut self, _: EchoPassRequest, _: Responder<method::Pass>) {}
    fn fail(&mut self, _: Responder<method::Fail>) {}
}

/// Records calls into a file: the first half of the divisions succeeds, the others fail.
fn record(path: &Path) {
    assert!(esatto_rpc_trace::install());
    let _tracing = Tracing::builder().in_process().start().unwrap();
    let mut config = esatto::track_events(16384);
    let source = config.data_sources[0].config.as_mut().unwrap();
    let events = source.track_event_config.as_mut().unwrap();
    events.enabled_categories = vec!["echo".into()];
    events.disabled_categories = vec!["*".into()];
    let session = Session::start(Backend::InProcess, config).unwrap();
    let (client, server) = endpoints::<Echo>().unwrap();
    let mut server = serve(server, Answers).unwrap();
    let server = thread::spawn(move || server.run().unwrap());
    let client = Client::new(client).unwrap();
    for call in 0..CALLS {
        let divisor = i32::from(call < CALLS / 2);
        let result = client.divide(&EchoDivideRequest { dividend: 1, divisor }).wait().unwrap();
        assert_eq!(result.is_ok(), divisor == 1);
        client.later(&Choice::Text("now".to_owned())).wait().unwrap();
    }
    drop(client);
    server.join().unwrap();
    fs::write(path, session.stop().unwrap()).unwrap();
}

#[test]
fn each_call_has_its_arrows_and_errors_have_their_value() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let trace = harness.path("trace");
        record(&trace);
        tp::assert_clean(&trace);
        let arrows = tp::rows(
            &trace,
            "select one.name || ' → ' || other.name as arrow, count(*) as count
             from flow join slice as one on slice_out = one.id join slice as other on slice_in = other.id
             group by 1 order by 1",
        );
        let arrows: Vec<_> = arrows.iter().map(|row| (row.text("arrow"), row.int("count"))).collect();
        let all = i64::from(CALLS);
        assert_eq!(
            arrows,
            [
                ("Echo.Divide → Echo.Divide", all),
                ("Echo.Divide → Echo.Divide reply", all),
                ("Echo.Later reply → Echo.Later reply", all),
                ("Echo.Later → Echo.Later", all),
                ("Echo.Later → Echo.Later reply", all),
            ]
        );
        let ends = tp::rows(
            &trace,
            "select name || ' ' || extract_arg(arg_set_id, 'debug.role') || ' '
                 || extract_arg(arg_set_id, 'debug.status') || ' '
                 || ifnull(extract_arg(arg_set_id, 'debug.error'), '-') as end, count(*) as count
             from slice where extract_arg(arg_set_id, 'debug.status') is not null group by 1 order by 1",
        );
        let ends: Vec<_> = ends.iter().map(|row| (row.text("end"), row.int("count"))).collect();
        assert_eq!(
            ends,
            [
                ("Echo.Divide reply client error 1", all / 2),
                ("Echo.Divide reply client ok -", all / 2),
                ("Echo.Divide server error -", all / 2),
                ("Echo.Later reply client ok -", all),
            ]
        );
        Ok(())
    });
}
