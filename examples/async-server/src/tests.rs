use esatto::{Backend, Session, Tracing};
use esatto_trace::Trace;
use tracing_subscriber::prelude::*;

use super::{CLIENTS, REQUESTS, serve_and_ask};

#[test]
fn every_request_is_in_the_trace() {
    let _tracing = Tracing::builder().in_process().start().expect("connects");
    tracing_subscriber::registry().with(esatto_tracing::layer()).init();
    let session = Session::start(Backend::InProcess, esatto::track_events(16 * 1024)).expect("starts");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads can be started");
    let answered = runtime.block_on(serve_and_ask()).expect("answers come");
    assert_eq!(answered, CLIENTS * REQUESTS);
    drop(runtime);
    let trace = Trace::read(&session.stop().expect("stops")[..]);
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);
    let lanes = |name: &str| {
        let lanes = trace.slices.iter().filter(|slice| slice.tid.is_none() && slice.name.as_deref() == Some(name));
        lanes.count() as u64
    };
    assert_eq!(lanes("ask"), CLIENTS * REQUESTS);
    assert_eq!(lanes("Store::read"), CLIENTS * REQUESTS);
    assert_eq!(lanes("client"), CLIENTS);
    assert!(lanes("request") <= CLIENTS * REQUESTS);
    assert!(trace.slices.iter().any(|slice| slice.name.as_deref() == Some("checksum") && slice.depth > 0));
}
