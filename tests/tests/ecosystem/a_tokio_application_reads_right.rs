//! Hundreds of tasks with nested spans across awaits, select, spawn, join and cancellation,
//! recorded by the layer and by the subscriber.

use std::time::Duration;

use esatto_tests::sdk::{Recorder, Trace};
use tokio::time::sleep;
use tracing::field::Empty;
use tracing::{Instrument, Span};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::prelude::*;

use super::{assert_lanes_read_right, everything, runtime};

const REQUESTS: u64 = 300;

mod by_the_layer {
    esatto_tests::scenario!(super::with_layer, super::check);
}

mod by_the_subscriber {
    esatto_tests::scenario!(super::with_subscriber, super::check);
}

fn with_layer(recorder: &Recorder) {
    // `EnvFilter` is of all layers, as most programs have it.
    let filter = EnvFilter::new("info,ecosystem=debug");
    let subscriber = tracing_subscriber::registry().with(filter).with(esatto_tracing::layer());
    tracing::subscriber::set_global_default(subscriber).expect("is the first");
    record(recorder);
}

fn with_subscriber(recorder: &Recorder) {
    tracing::subscriber::set_global_default(esatto_tracing::subscriber()).expect("is the first");
    record(recorder);
}

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(&[]);
    let session = recorder.start(everything());
    runtime().block_on(application());
    recorder.finish(session);
}

async fn application() {
    let requests: Vec<_> = (0..REQUESTS)
        .map(|id| tokio::spawn(request(id).instrument(tracing::info_span!("request", id, status = Empty))))
        .collect();
    for (id, request) in requests.into_iter().enumerate() {
        let result = request.await;
        assert_eq!(result.is_err(), id % 50 == 49, "some panic, the others do not: {result:?}");
    }
}

async fn request(id: u64) {
    parse(id).await;
    // Two at the same time, in the task of the request.
    let (left, right) = tokio::join!(query(id, 0), query(id, 1));
    compute(left + right);
    // One wins, the other one is cancelled.
    tokio::select! {
        () = race(id, 20) => {}
        () = race(id, 500) => {}
    }
    // A separate task, which may outlive its parent.
    let audit = tokio::spawn(audit().instrument(tracing::info_span!("audit", request = id)));
    if id % 3 == 0 {
        audit.await.expect("is not cancelled");
    } else if id % 3 == 1 {
        audit.abort();
    }
    if id % 50 == 49 {
        panic!("as planned");
    }
    Span::current().record("status", 200);
}

#[tracing::instrument]
async fn parse(request: u64) {
    tokio::task::yield_now().await;
    tracing::debug!(request, "parsed");
}

#[tracing::instrument]
async fn query(request: u64, number: u32) -> u64 {
    sleep(Duration::from_millis(u64::from(number) + request % 3)).await;
    fetch(request).await
}

#[tracing::instrument(level = "debug")]
async fn fetch(request: u64) -> u64 {
    tokio::task::yield_now().await;
    request
}

#[tracing::instrument]
async fn race(request: u64, milliseconds: u64) {
    sleep(Duration::from_millis(milliseconds)).await;
    tracing::info!(request, "won");
}

#[tracing::instrument]
fn compute(seed: u64) -> u64 {
    (0..1000).fold(seed, |sum, number| sum.wrapping_mul(31).wrapping_add(number))
}

async fn audit() {
    sleep(Duration::from_millis(2)).await;
}

fn check(trace: &Trace) {
    assert_lanes_read_right(trace);
    let lanes = "select name, count(*) as number, count(distinct extract_arg(args, 'debug.id')) as ids,
            count(distinct extract_arg(args, 'debug.request')) as requests,
            count(extract_arg(args, 'debug.status')) as answered, category
        from lanes group by name order by name";
    // Arrows that lead to a lifetime: from a poll of the parent, or from a mark on the lane of the
    // parent.
    let origins = "
        create table origins as
        select lanes.name as name, lanes.id as lane, origin.name as parent, origin.ts <= lanes.ts as is_earlier,
            extract_arg(lanes.args, 'debug.request') as request,
            coalesce(
                (select extract_arg(parents.args, 'debug.id') from chain join lanes as parents on lane = parents.id
                    where poll = origin.id),
                (select extract_arg(parents.args, 'debug.id') from lanes as parents
                    where parents.id = (select parent_id from slice where slice.id = origin.id)),
                (select extract_arg(parents.args, 'debug.request') from chain join lanes as parents on lane = parents.id
                    where poll = origin.id),
                (select extract_arg(parents.args, 'debug.request') from lanes as parents
                    where parents.id = (select parent_id from slice where slice.id = origin.id))) as from_request
        from lanes join flow on slice_in = lanes.id join all_slices as origin on slice_out = origin.id;";
    let wrong_origins = "select * from origins where request is not from_request or not is_earlier";
    let originless = "select name, count(*) as number from lanes
        where name != 'request' and id not in (select lane from origins) group by name";
    let several_origins = "select name, count(*) as number from origins group by lane having number > 1";
    let sync = "select polls.name as name, count(*) as number, parent.name as parent
        from polls left join slice as parent on parent.id = (select parent_id from slice where slice.id = polls.id)
        where polls.name = 'compute' group by polls.name, parent.name";
    let threads = "select count(distinct utid) as number from polls";
    let tracks = "select count(distinct track_id) as number from lanes where name = 'request'";
    let logs = "select msg, prio, tag, count(*) as number from android_logs group by msg, prio order by msg";
    let alone = "select name, count(*) as number from polls where id not in (select poll from chain)
        and name != 'compute' group by name";
    let places = "select count(*) as number from lanes where extract_arg(args, 'source.file_name') is null";
    let prelude = [super::SLICES, super::CHAINS].concat();
    let [lanes, wrong_origins, originless, several_origins, sync, threads, tracks, logs, alone, places] =
        trace.query([
            &[&prelude, lanes].concat(),
            &[origins, wrong_origins].concat(),
            originless,
            several_origins,
            sync,
            threads,
            tracks,
            logs,
            alone,
            places,
        ]);
    let of =
        |name: &str| lanes.iter().find(|row| row.text("name") == name).unwrap_or_else(|| panic!("{name}: {lanes:#?}"));
    let requests = REQUESTS as i64;
    assert_eq!((of("request").int("number"), of("request").int("ids")), (requests, requests));
    assert_eq!(of("request").int("answered"), requests - requests / 50, "recorded later, by those that do not panic");
    for (name, each) in [("parse", 1), ("query", 2), ("fetch", 2), ("race", 2), ("audit", 1)] {
        // A task that is cancelled before its first poll is entered once, to be dropped: that is a
        // slice of the thread.
        let cancelled = alone.iter().filter(|row| row.text("name") == name).map(|row| row.int("number")).sum::<i64>();
        assert!(cancelled == 0 || name == "audit", "{name}: {alone:#?}");
        assert_eq!(of(name).int("number") + cancelled, requests * each, "{name}");
        assert_eq!(of(name).int("requests") + cancelled, requests, "{name}");
        assert!(of(name).text("category").ends_with("a_tokio_application_reads_right"), "{name}");
    }
    assert!(wrong_origins.is_empty(), "arrows from other parents: {wrong_origins:#?}");
    assert!(originless.is_empty(), "lifetimes without a parent: {originless:#?}");
    assert!(several_origins.is_empty(), "lifetimes with several parents: {several_origins:#?}");
    assert_eq!((sync.len(), sync[0].int("number"), sync[0].text("parent")), (1, requests, "request"), "{sync:#?}");
    assert!(threads[0].int("number") > 1, "tasks move between threads");
    assert!(tracks[0].int("number") <= requests, "lanes are used again");
    let logs: Vec<_> = logs.iter().map(|row| (row.text("msg"), row.int("prio"), row.int("number"))).collect();
    assert_eq!(logs, [("parsed", 3, requests), ("won", 4, requests)]);
    assert_eq!(places[0].int("number"), 0, "each has its place in the source code");
}
