//! Calls of a method with a category. Without the feature `trace` there are no hooks; with
//! `--adapter no` no adapter is installed; with `--session none` no session records.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bench_harness::{Batch, Case, Program, thread_cpu_time};
use esatto_ipc::callee::{Callee, CalleeEvent};
use esatto_ipc::caller::{Caller, CallerEvent, NewCall};
use esatto_ipc::connection::WriteQueue;
use esatto_ipc::server::Incoming;
use esatto_ipc::{Channel, FrameDecoder, ServerConnection, ServerLimits, Stream};

/// Code that `build.rs` generated.
#[allow(missing_docs)]
mod protos {
    include!(concat!(env!("OUT_DIR"), "/protos.rs"));
}

use protos::bench::{Payload, echo};

const CASES: &[Case] = &[
    Case { name: "call without a socket", ops: 200, events: 0, run: in_memory },
    Case { name: "blocking call", ops: 100, events: 0, run: blocking_call },
    #[cfg(feature = "trace")]
    Case { name: "slice pair", ops: 400, events: 0, run: trace::pair },
    #[cfg(feature = "trace")]
    Case { name: "slice pair with the arguments of a call", ops: 200, events: 0, run: trace::pair_of_call },
];

/// A call through both sides of the library, without the socket between them.
fn in_memory(batch: &mut Batch) {
    let mut ends = Ends::new();
    ends.call();
    batch.time(|_| ends.call());
}

/// Both ends of a connection in memory.
struct Ends {
    caller: Caller,
    callee: Callee,
    requests: WriteQueue,
    replies: WriteQueue,
    at_server: FrameDecoder,
    at_client: FrameDecoder,
    now: Instant,
}

impl Ends {
    fn new() -> Self {
        Self {
            caller: Caller::new(1),
            callee: Callee::new(8),
            requests: WriteQueue::default(),
            replies: WriteQueue::default(),
            at_server: FrameDecoder::new(),
            at_client: FrameDecoder::new(),
            now: Instant::now(),
        }
    }

    #[inline(never)]
    fn call(&mut self) {
        let call = NewCall {
            service: &echo::SERVICE,
            method_id: 1,
            args: black_box(b"\x0a\x10sixteen bytes !!"),
            fd: &mut None,
            deadline: None,
            window: 0,
            is_blocking: true,
        };
        self.caller.start(call, self.now, &mut self.requests).expect("the call starts");
        // The first call waits for the answer to the bind.
        while self.caller.open_calls() > 0 {
            transfer(&mut self.requests, &mut self.at_server);
            while let Ok(Some((frame, _))) = self.at_server.next_rpc_frame() {
                let service = |index| (index == 0).then_some(&echo::SERVICE);
                let event = self.callee.handle(&frame, &service, self.now, &mut self.replies);
                if let CalleeEvent::Invoke(invoked) = event {
                    let sent =
                        self.callee.reply(invoked.key, black_box(invoked.args), &mut None, false, &mut self.replies);
                    sent.expect("the call is open");
                }
            }
            transfer(&mut self.replies, &mut self.at_client);
            while let Ok(Some((frame, len))) = self.at_client.next_rpc_frame() {
                let event = self.caller.handle(&frame, len, self.now, &mut self.requests);
                black_box(matches!(event, CallerEvent::Reply { .. }));
            }
        }
    }
}

fn transfer(queue: &mut WriteQueue, decoder: &mut FrameDecoder) {
    let bytes = queue.buffer();
    assert_eq!(decoder.push(bytes), bytes.len());
    bytes.clear();
}

/// Time of the server's thread at the last request with [`MARK`].
static SERVER_CPU_NS: AtomicU64 = AtomicU64::new(0);
const MARK: &[u8] = b"mark";

struct Service;

impl echo::Handler for Service {
    fn call(&mut self, call: Incoming<'_, echo::method::Call>) {
        call.answer(|request| {
            if request.data.as_deref() == Some(MARK) {
                SERVER_CPU_NS.store(ns(thread_cpu_time()), Ordering::Release);
            }
            Ok(request)
        });
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

static CLIENT: OnceLock<echo::Client> = OnceLock::new();

/// Blocking calls over a socket, with both threads on one CPU. The CPU time is that of both.
fn blocking_call(batch: &mut Batch) {
    let client = CLIENT.get_or_init(|| {
        let (ours, theirs) = Stream::pair().expect("descriptors");
        // Where the harness keeps this thread: waking one on another CPU costs more than the call.
        thread::spawn(|| ServerConnection::new(theirs, echo::Serve(Service), ServerLimits::default()).block());
        echo::Client::new(&Channel::new(ours))
    });
    let call = |data: &[u8]| {
        let request = Payload { data: Some(data.to_vec()), ..Payload::default() };
        black_box(client.call(&request).wait().expect("the server answers"));
        SERVER_CPU_NS.load(Ordering::Acquire)
    };
    let server = call(MARK);
    batch.time(|_| {
        call(b"sixteen bytes !!");
    });
    batch.add_cpu(Duration::from_nanos(call(MARK) - server));
}

#[cfg(feature = "trace")]
mod trace {
    use std::hint::black_box;
    use std::sync::{Mutex, OnceLock, PoisonError};
    use std::time::Duration;

    use bench_harness::{Batch, Finished, Options};
    use esatto::{Backend, Flow, Session, Tracing};

    esatto::categories! {
        static SDK = "sdk";
    }

    static TRACING: OnceLock<Tracing> = OnceLock::new();
    static SESSION: Mutex<Option<Session>> = Mutex::new(None);

    pub(super) fn pair(batch: &mut Batch) {
        batch.time(|_| {
            esatto::begin!(SDK, "pair");
            esatto::end!(SDK);
        });
    }

    pub(super) fn pair_of_call(batch: &mut Batch) {
        batch.time(|i| {
            let bytes = black_box(18_u64);
            esatto::begin!(SDK, "bench.Echo/Call", role = "client", request_id = i, bytes = bytes, flow: Flow::global(i));
            esatto::end!(SDK);
        });
    }

    pub(super) fn start(options: &Options) {
        if options.get("adapter") == Some("no") {
            return;
        }
        assert!(esatto_rpc_trace::install(), "the first adapter");
        let tracing = Tracing::builder().in_process().categories(CATEGORIES).start().expect("tracing starts");
        if options.get("session") != Some("none") {
            let session =
                Session::start(Backend::InProcess, esatto::track_events(131_072)).expect("the session starts");
            assert!(tracing.wait_until_enabled(&SDK, Duration::from_secs(10)), "the session records");
            *SESSION.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
        }
        TRACING.set(tracing).expect("only once");
    }

    pub(super) fn finish() -> Finished {
        if let Some(tracing) = TRACING.get() {
            tracing.flush(Duration::from_secs(10));
        }
        let session = SESSION.lock().unwrap_or_else(PoisonError::into_inner).take();
        let trace = session.map(|session| session.stop().expect("the session stops"));
        assert!(trace.as_ref().is_none_or(|trace| trace.len() > 1 << 16), "the session recorded");
        Finished { events: 0, trace }
    }
}

#[cfg(not(feature = "trace"))]
mod trace {
    use bench_harness::{Finished, Options};

    pub(super) fn start(_: &Options) {}

    pub(super) fn finish() -> Finished {
        Finished::default()
    }
}

fn main() {
    bench_harness::run(&Program { cases: CASES, start: trace::start, finish: trace::finish });
}
