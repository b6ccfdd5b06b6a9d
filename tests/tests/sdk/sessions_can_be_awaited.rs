//! Everything that a session does can be awaited without a runtime, also by several tasks of one
//! thread; dropping a future changes nothing.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll};
use std::sync::Arc;
use std::task::Wake;
use std::thread::Thread;

use esatto::{CloneOf, Session, SessionConfig};
use esatto_tests::sdk::{Recorder, Trace};

esatto::categories! {
    static APP = "app";
}
esatto_tests::scenario!(record, check);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

async fn session(recorder: &Recorder) -> Result<Vec<u8>, esatto::Error> {
    let session = Session::open(recorder.backend())?;
    session.set_up(SessionConfig::new().buffer_size_kb(1024).name("awaited").deferred_start()).await?;
    session.start_recording().await?;
    for number in 0..3000 {
        esatto::instant!(APP, "event", number = number);
    }
    session.flush(None).await?;
    // Asked for together, awaited in another order; one is forgotten, and happens all the same.
    let (stats, state, capabilities) = (session.stats(), session.service_state(), session.capabilities());
    drop(capabilities);
    assert_eq!(state.await?.num_sessions_started, Some(1));
    assert_eq!(stats.await?.buffer_stats.len(), 1);
    let clone = Session::open(recorder.backend())?;
    clone.clone_session(CloneOf::Name("awaited".into())).await?;
    assert_eq!(esatto_trace::events(&clone.read().await?).len(), 3000);
    session.stop_recording().await?;
    let mut trace = Vec::new();
    let mut chunks = session.chunks();
    while let Some(chunk) = chunks.next_chunk().await {
        trace.extend(chunk?);
    }
    assert!(chunks.next_chunk().await.is_none());
    Ok(trace)
}

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    recorder.save("trace", block_on(session(recorder)).expect("it works"));
}

fn check(trace: &Trace) {
    let [events] = trace.query(["select count(distinct extract_arg(arg_set_id, 'debug.number')) as n from slice"]);
    assert_eq!(events[0].int("n"), 3000);
}
