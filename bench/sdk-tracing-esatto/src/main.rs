//! The cases of the group `sdk`, with `--with layer` or `--with subscriber`. With `--session none`
//! no session records.

#![forbid(unsafe_code)]

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bench_harness::{Finished, Options, Program};
use esatto::{Backend, Session, Tracing};
use tracing_subscriber::layer::SubscriberExt;

static TRACING: OnceLock<Tracing> = OnceLock::new();
static SESSION: Mutex<Option<Session>> = Mutex::new(None);

fn start(options: &Options) {
    let installed = match options.get("with") {
        Some("subscriber") => tracing::subscriber::set_global_default(esatto_tracing::subscriber()),
        _ => tracing::subscriber::set_global_default(tracing_subscriber::registry().with(esatto_tracing::layer())),
    };
    installed.expect("the only one");
    let tracing = Tracing::builder().in_process().start().expect("tracing starts");
    TRACING.set(tracing).expect("only once");
    if options.get("session") != Some("none") {
        let session = Session::start(Backend::InProcess, esatto::track_events(131_072)).expect("the session starts");
        *SESSION.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }
}

fn finish() -> Finished {
    TRACING.get().expect("started before").flush(Duration::from_secs(10));
    let session = SESSION.lock().unwrap_or_else(PoisonError::into_inner).take();
    Finished { events: 0, trace: session.map(|session| session.stop().expect("the session stops")) }
}

fn main() {
    bench_harness::run(&Program { cases: bench_sdk_tracing::CASES, start, finish });
}
