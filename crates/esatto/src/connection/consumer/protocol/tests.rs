use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::sync::{Arc, Mutex};

use super::*;
use crate::connection::pending_operation::Pending;
use crate::error::ErrorKind;

struct Bench {
    consumer: Consumer,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let now = Instant::now();
        Self { consumer: Consumer::new(now), now }
    }

    fn ask(&mut self, command: impl FnOnce(Completer) -> Command) -> Pending<Vec<u8>> {
        let (pending, done) = Pending::new(Ok);
        self.consumer.command(command(done));
        pending
    }

    fn set_up(&mut self) -> Pending<Vec<u8>> {
        let set_up = SetUp {
            request: vec![1],
            file: None,
            is_deferred: false,
            is_armed: false,
            flush_timeout: Duration::from_secs(5),
            stop_timeout: Duration::from_secs(5),
        };
        self.ask(|done| Command::SetUp(Box::new(set_up), done))
    }

    /// Returns the calls since the last time. Those with a tag wait for an answer.
    fn calls(&mut self) -> Vec<(&'static str, Option<Tag>)> {
        self.consumer.take_calls().iter().map(|call| (call.method, call.tag)).collect()
    }

    fn answer(&mut self, tag: Tag, body: &[u8], has_more: bool) {
        self.consumer.reply(tag, &Reply { success: true, has_more, body, memory: &mut None });
    }

    /// Starts a session that records.
    fn record(&mut self) {
        self.set_up().wait().expect("is kept");
        let start = self.ask(Command::Start);
        self.calls();
        // ObserveEventsResponse { events { all_data_sources_started: true } }
        self.answer(Tag::Observe, &[0x0a, 2, 0x10, 1], true);
        start.wait().expect("starts");
    }

    fn later(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.consumer.expire(self.now);
    }
}

fn is_over<T>(pending: &mut Pending<T>) -> bool {
    // It is polled only while it is not complete.
    matches!(pin!(pending).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(_))
}

fn names(calls: &[(&'static str, Option<Tag>)]) -> Vec<&'static str> {
    calls.iter().map(|(name, _)| *name).collect()
}

#[test]
fn a_stop_waits_for_the_start() {
    let mut bench = Bench::new();
    drop(bench.set_up());
    drop(bench.ask(Command::Start));
    assert_eq!(names(&bench.calls()), ["ObserveEvents", "EnableTracing", "QueryCapabilities"]);
    let mut stop = bench.ask(Command::Stop);
    assert!(bench.calls().is_empty() && !is_over(&mut stop));
    bench.answer(Tag::Observe, &[0x0a, 2, 0x10, 1], true);
    assert_eq!(bench.calls(), [("DisableTracing", None)]);
    bench.answer(Tag::Enable, &[8, 1], false);
    stop.wait().expect("stops");
}

#[test]
fn a_start_that_fails_does_not_delay_the_stop() {
    let mut bench = Bench::new();
    drop(bench.set_up());
    let start = bench.ask(Command::Start);
    drop(bench.ask(Command::Stop));
    bench.calls();
    bench.later(20);
    assert_eq!(start.wait().expect_err("nobody answered").kind(), ErrorKind::TimedOut);
    assert_eq!(names(&bench.calls()), ["DisableTracing"]);
}

#[test]
fn unanswered_operations_time_out() {
    let mut bench = Bench::new();
    bench.record();
    let mut flush = bench.ask(|done| Command::Flush { timeout: Some(Duration::from_secs(60)), done });
    let state = bench.ask(|done| Command::ServiceState { request: Vec::new(), done });
    bench.later(20);
    assert_eq!(state.wait().expect_err("nobody answered").kind(), ErrorKind::TimedOut);
    assert!(!is_over(&mut flush), "it was given more time");
    bench.later(60);
    assert_eq!(flush.wait().expect_err("nobody answered").to_string(), "the tracing service did not flush in time");
    assert!(bench.consumer.next_deadline().is_none());
}

#[test]
fn statistics_are_requested_one_after_the_other() {
    let mut bench = Bench::new();
    bench.record();
    let all: Vec<_> = (0..3).map(|_| bench.ask(Command::Stats)).collect();
    for (number, stats) in all.into_iter().enumerate() {
        assert_eq!(bench.calls(), [("GetTraceStats", Some(Tag::Stats))]);
        bench.answer(Tag::Stats, &[7, number as u8], false);
        assert_eq!(stats.wait().expect("told"), [7, number as u8]);
    }
    assert!(bench.calls().is_empty());
}

#[test]
fn answers_in_parts_are_put_together() {
    let mut bench = Bench::new();
    let state = bench.ask(|done| Command::ServiceState { request: Vec::new(), done });
    let Some((_, Some(tag))) = bench.calls().pop() else { panic!("no call") };
    bench.answer(tag, &[1, 2], true);
    bench.answer(tag, &[3], false);
    assert_eq!(state.wait().expect("told"), [1, 2, 3]);
}

#[test]
fn only_one_read_at_a_time_is_possible() {
    let read = |done| Command::Read(Sink::Answer(Vec::new()), done);
    let mut bench = Bench::new();
    bench.record();
    let first = bench.ask(read);
    assert_eq!(bench.ask(read).wait().expect_err("one is under way").kind(), ErrorKind::State);
    // A packet "ab" in two slices, in two replies; then a packet that does not end.
    bench.answer(Tag::Read, &[0x12, 5, 0x0a, 1, b'a', 0x10, 0], true);
    bench.answer(Tag::Read, &[0x12, 5, 0x0a, 1, b'b', 0x10, 1, 0x12, 3, 0x0a, 1, b'c'], false);
    assert_eq!(first.wait().expect("reads"), b"\x0a\x02ab");

    // A read that the service does not finish is given up. It blocks further reads until the
    // service finishes it.
    let second = bench.ask(read);
    bench.later(20);
    assert_eq!(second.wait().expect_err("silence").kind(), ErrorKind::TimedOut);
    bench.calls();
    let impatient = bench.ask(read);
    bench.later(20);
    assert_eq!(impatient.wait().expect_err("silence again").kind(), ErrorKind::TimedOut);
    let (mut third, mut stats) = (bench.ask(read), bench.ask(Command::Stats));
    assert!(!is_over(&mut third) && !is_over(&mut stats) && bench.calls().is_empty());
    bench.answer(Tag::Read, &[], false);
    assert_eq!(names(&bench.calls()), ["ReadBuffers", "GetTraceStats"]);
    bench.answer(Tag::Read, &[], false);
    assert_eq!(third.wait().expect("nothing was left"), []);
}

#[test]
fn an_old_service_starts_at_once_and_rejects_missing_methods() {
    let mut bench = Bench::new();
    drop(bench.set_up());
    let start = bench.ask(Command::Start);
    for (_, tag) in bench.calls() {
        if let Some(tag @ (Tag::Observe | Tag::Barrier(_))) = tag {
            bench.consumer.rejected(tag);
        }
    }
    start.wait().expect("it starts at once");
    bench.answer(Tag::Enable, &[8, 1], false);
    let clone = bench.ask(|done| Command::Clone { request: Vec::new(), file: None, done });
    bench.consumer.rejected(Tag::Clone);
    assert_eq!(clone.wait().expect_err("too old").kind(), ErrorKind::Unsupported);
}

#[test]
fn the_end_of_the_connection_is_reported_in_order() {
    let mut bench = Bench::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = |name: &'static str| {
        let told = Arc::clone(&told);
        Listener::new(move |result: Result<(), Error>| {
            told.lock().expect("one thread").push((name, result.expect_err("it is gone").kind()));
        })
    };
    bench.consumer.command(Command::OnStop(tell("stop")));
    bench.consumer.command(Command::OnError(tell("error")));
    bench.consumer.command(Command::OnStart(tell("start")));
    drop(bench.set_up());
    let start = bench.ask(Command::Start);
    let read = bench.ask(|done| Command::Read(Sink::Answer(Vec::new()), done));
    bench.consumer.disconnected(Error::disconnected("the service died"));
    let kind = ErrorKind::Disconnected;
    assert_eq!(*told.lock().expect("one thread"), [("error", kind), ("start", kind), ("stop", kind)]);
    for pending in [start, read, bench.ask(Command::Stop), bench.ask(Command::Stats)] {
        assert_eq!(
            pending.wait().expect_err("it is gone").to_string(),
            "no connection to the tracing service: the service died"
        );
    }
    bench.consumer.command(Command::OnStart(tell("late")));
    assert_eq!(told.lock().expect("one thread").len(), 4);
    assert!(bench.calls().is_empty());
}

#[test]
fn operations_of_a_closed_session_fail() {
    let mut bench = Bench::new();
    bench.record();
    let flush = bench.ask(|done| Command::Flush { timeout: None, done });
    drop(bench);
    assert!(flush.wait().expect_err("closed").is_disconnected());
}
