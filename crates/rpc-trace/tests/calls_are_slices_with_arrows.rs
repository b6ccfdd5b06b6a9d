//! Traced calls between two threads of this process, as a reader of the trace sees them.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use esatto::{Backend, Session, TraceConfig, Tracing};
use esatto_ipc::server::{Context, Replies, ServerConnection, ServerLimits};
use esatto_ipc::{CallError, Channel, Code, Status, Stream};
use esatto_trace::{AnnotationValue, Slice, Trace};

#[esatto::trace_rpc(category = "rpc.test")]
trait Shop {
    async fn buy(&self, context: &Context, request: TraceConfig) -> Result<TraceConfig, Status>;
    async fn watch(&self, context: &Context, request: TraceConfig, replies: Replies<TraceConfig>)
    -> Result<(), Status>;
    async fn note(&self, context: &Context, request: TraceConfig);
    #[rpc(category = "")]
    async fn silent(&self, context: &Context, request: TraceConfig) -> Result<TraceConfig, Status>;
}

struct Shelf;

impl Shop for Shelf {
    async fn buy(&self, context: &Context, request: TraceConfig) -> Result<TraceConfig, Status> {
        match request.duration_ms {
            Some(0) => Err(Status::new(Code::NotFound, "sold out")),
            Some(1) => {
                context.cancelled().await;
                Err(Code::Cancelled.into())
            }
            _ => Ok(request),
        }
    }

    async fn watch(&self, _: &Context, request: TraceConfig, mut replies: Replies<TraceConfig>) -> Result<(), Status> {
        for _ in 0..request.duration_ms.unwrap_or(0) {
            replies.send(&request).await?;
        }
        Ok(())
    }

    async fn note(&self, _: &Context, _: TraceConfig) {}

    async fn silent(&self, _: &Context, request: TraceConfig) -> Result<TraceConfig, Status> {
        Ok(request)
    }
}

static TRACING: LazyLock<Tracing> = LazyLock::new(|| {
    assert!(esatto_rpc_trace::install());
    assert!(!esatto_rpc_trace::install(), "once per process");
    Tracing::builder().in_process().start().expect("connects")
});

/// Sessions record all threads, so only one test at a time has one.
static TURN: Mutex<()> = Mutex::new(());

/// Returns the trace of calls over a new connection, whose server has ended.
fn record(category: &str, calls: impl FnOnce(&shop::Client)) -> Trace {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    LazyLock::force(&TRACING);
    let mut config = esatto::track_events(4096);
    let source = config.data_sources[0].config.as_mut().expect("is there");
    let events = source.track_event_config.as_mut().expect("is there");
    events.enabled_categories = vec![category.into()];
    events.disabled_categories = vec!["*".into()];
    let session = Session::start(Backend::InProcess, config).expect("starts");
    let (ours, theirs) = Stream::pair().expect("a pair");
    let dispatch = shop::ServeAsync::new(Shelf);
    let server = thread::spawn(move || ServerConnection::new(theirs, dispatch, ServerLimits::default()).block());
    let client = shop::Client::new(&Channel::new(ours));
    // Binds the service.
    client.silent(&config_of(9)).wait().expect("is answered");
    calls(&client);
    client.channel().close();
    drop(client);
    server.join().expect("ends");
    let trace = Trace::read(&session.stop().expect("stops")[..]);
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);
    trace
}

fn config_of(duration_ms: u32) -> TraceConfig {
    TraceConfig { duration_ms: Some(duration_ms), ..TraceConfig::default() }
}

fn name(slice: &Slice) -> &str {
    slice.name.as_deref().unwrap_or_default()
}

/// Returns `name role` of a slice; `name` alone on the track of a call.
fn title(trace: &Trace, slice: usize) -> String {
    let slice = &trace.slices[slice];
    let role = trace.events[slice.event].annotations.iter().find(|a| a.name == "role").map(|a| &a.value);
    match role {
        Some(AnnotationValue::String(role)) => format!("{} {role}", name(slice)),
        _ => name(slice).to_owned(),
    }
}

/// Returns the arrows, as pairs of titles.
fn arrows(trace: &Trace) -> Vec<String> {
    let mut arrows: Vec<String> =
        trace.flows.iter().map(|flow| format!("{} → {}", title(trace, flow.from), title(trace, flow.to))).collect();
    arrows.sort();
    arrows
}

/// Returns the value of each annotation `status`, in the order of time.
fn statuses(trace: &Trace) -> Vec<String> {
    let all = trace.events.iter().flat_map(|event| &event.annotations).filter(|a| a.name == "status");
    all.map(|a| if let AnnotationValue::String(text) = &a.value { text.to_string() } else { String::new() }).collect()
}

#[test]
fn a_call_is_one_slice_on_each_side_and_an_arrow() {
    let trace = record("rpc.test", |client| {
        assert_eq!(client.buy(&config_of(7)).wait(), Ok(config_of(7)));
    });
    assert_eq!(arrows(&trace), ["Shop.Buy client → Shop.Buy server", "Shop.Buy server → Shop.Buy reply client"]);
    assert_eq!(trace.slices.iter().filter(|slice| !slice.instant).count(), 2, "{:?}", trace.slices);
    assert!(trace.slices.iter().all(|slice| slice.duration_ns.is_some()));
    assert_eq!(statuses(&trace), ["ok"]);
}

#[test]
fn failures_are_told() {
    let trace = record("rpc.test", |client| {
        assert_eq!(client.buy(&config_of(0)).wait().unwrap_err().code(), Code::NotFound);
        let error = client.buy(&config_of(1)).timeout(Duration::from_millis(30)).wait().unwrap_err();
        assert_eq!(error, CallError::Timeout("Shop.Buy"));
    });
    // The server's slice and the client's reply tell the first failure.
    assert_eq!(statuses(&trace), ["error", "error", "timeout"]);
    assert!(trace.slices.iter().all(|slice| slice.duration_ns.is_some()), "{:?}", trace.slices);
}

#[test]
fn each_reply_of_a_stream_has_its_own_arrow() {
    let trace = record("rpc.test", |client| {
        assert_eq!(client.watch(&config_of(3)).map(Result::unwrap).count(), 3);
    });
    let reply = "Shop.Watch reply server → Shop.Watch client";
    let request = "Shop.Watch client → Shop.Watch server";
    let all = arrows(&trace);
    assert_eq!(all.iter().filter(|arrow| *arrow == reply).count(), 3, "{all:?}");
    assert!(all.contains(&request.to_owned()), "{all:?}");
    assert!(!all.iter().any(|arrow| arrow.starts_with("Shop.Watch reply") && arrow.contains("→ Shop.Watch reply")));
    assert!(trace.slices.iter().all(|slice| slice.duration_ns.is_some()), "{:?}", trace.slices);
}

#[test]
fn a_one_way_call_ends_at_the_server() {
    let trace = record("rpc.test", |client| {
        client.note(&config_of(1)).send().unwrap();
        client.silent(&config_of(1)).wait().unwrap();
    });
    assert_eq!(arrows(&trace), ["Shop.Note client → Shop.Note server"]);
    let calls = trace.slices.iter().filter(|slice| name(slice) != "rpc connect").count();
    assert_eq!((calls, statuses(&trace).len()), (2, 0));
}

#[test]
fn without_the_category_nothing_is_recorded() {
    let trace = record("other", |client| {
        client.buy(&config_of(7)).wait().unwrap();
        client.note(&config_of(7)).send().unwrap();
    });
    assert_eq!(trace.slices.len(), 0);
}

/// Returns the number under a name of each event with a name.
fn numbers(trace: &Trace, event: &str, argument: &str) -> Vec<Option<i64>> {
    let slices = trace.slices.iter().filter(|slice| name(slice) == event);
    let annotations = slices.map(|slice| &trace.events[slice.event].annotations);
    let value = |value: &AnnotationValue| match value {
        AnnotationValue::Int(number) => Some(*number),
        AnnotationValue::Uint(number) => i64::try_from(*number).ok(),
        _ => None,
    };
    annotations.map(|all| all.iter().find(|a| a.name == argument).and_then(|a| value(&a.value))).collect()
}

#[test]
fn each_side_tells_its_peer_once() {
    let trace = record("rpc.test", |client| {
        for _ in 0..3 {
            client.buy(&config_of(7)).wait().unwrap();
        }
    });
    let this = Some(i64::from(std::process::id()));
    assert_eq!(numbers(&trace, "rpc connect", "peer_pid"), [this; 2]);
    assert!(numbers(&trace, "rpc connect", "peer_uid")[0].is_some());
}

/// A service that no server here has.
#[esatto::trace_rpc(category = "rpc.test")]
trait Cellar {
    async fn open(&self, context: &Context, request: TraceConfig) -> Result<TraceConfig, Status>;
}

#[test]
fn requests_for_services_that_are_not_there_are_told() {
    let trace = record("rpc", |client| {
        let error = cellar::Client::new(client.channel()).open(&config_of(1)).wait().unwrap_err();
        assert_eq!(error, CallError::NoSuchService("Cellar.Open"));
    });
    assert_eq!(trace.slices.iter().map(name).collect::<Vec<_>>(), ["rpc rejected"]);
}

#[test]
fn calls_of_the_thread_that_talks_to_services_are_not_recorded() {
    let trace = record("rpc.test", |client| {
        let (client, (sender, answered)) = (client.clone(), std::sync::mpsc::channel());
        let flushed = Session::open(Backend::InProcess).expect("opens");
        // Callbacks of sessions run on that thread.
        flushed.service_state().then(move |_| {
            let buying = client.buy(&config_of(7)).wait();
            sender.send(buying).expect("is awaited");
        });
        assert_eq!(answered.recv().expect("is called"), Ok(config_of(7)));
    });
    let roles: Vec<String> = (0..trace.slices.len()).map(|slice| title(&trace, slice)).collect();
    assert_eq!(roles, ["rpc connect server", "Shop.Buy server"]);
}
