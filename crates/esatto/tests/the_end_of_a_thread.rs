//! Threads end: what they recorded is handed over, what they traced afterwards is not, and whoever flushes on the way out flushes for all.

#![allow(missing_docs, reason = "tests")]

use core::cell::OnceCell;
use std::sync::Barrier;
use std::time::Duration;

use esatto::schema::{DataSourceConfig, TracePacketReader};
use esatto::{Backend, DataSource, Session, SessionConfig, Setup, Source, Tracing};

esatto::categories! {
    static TEST = "end";
}

/// Destroyed behind the state of the thread, if it is made before that: thread-locals go in the opposite order.
struct AtLast<'t>(&'t Tracing);

impl Drop for AtLast<'_> {
    fn drop(&mut self) {
        esatto::instant!(TEST, "after the end");
        assert!(self.0.flush(Duration::from_secs(30)));
    }
}

thread_local! {
    static AT_LAST: OnceCell<AtLast<'static>> = const { OnceCell::new() };
}

/// State of threads that takes its end badly.
struct Panics;

impl DataSource for Panics {
    type Config = ();
    type ThreadState = Fragile;
    type IncrementalState = ();

    fn setup(_: &Setup<'_, ()>) -> Self {
        Self
    }
}

#[derive(Default)]
struct Fragile;

impl Drop for Fragile {
    fn drop(&mut self) {
        // Not on the control thread: there it would be a test of something else.
        assert_ne!(std::thread::current().name(), Some("fragile"), "the thread ends");
    }
}

static PANICS: Source<Panics> = Source::new("panics");

fn names(trace: &[u8]) -> Vec<String> {
    esatto_trace::events(trace).into_iter().filter_map(|event| event.name).collect()
}

#[test]
fn is_the_end_of_what_it_records() {
    PANICS.register().unwrap();
    let tracing: &'static Tracing =
        Box::leak(Box::new(Tracing::builder().in_process().categories(CATEGORIES).start().unwrap()));
    let panics = DataSourceConfig { name: Some("panics".into()), ..Default::default() };
    let config = SessionConfig::new().buffer_size_kb(1024).data_source(panics);
    let session = Session::start(Backend::InProcess, config).unwrap();

    // A thread that sleeps, with an event in a chunk that is far from full, while another ends and flushes.
    let (asleep, end) = (Barrier::new(2), Barrier::new(2));
    let trace = std::thread::scope(|scope| {
        scope.spawn(|| {
            esatto::instant!(TEST, "asleep");
            asleep.wait();
            end.wait();
        });
        asleep.wait();
        let leaving = std::thread::spawn(|| {
            AT_LAST.with(|last| drop(last.set(AtLast(tracing))));
            esatto::instant!(TEST, "leaving");
        });
        leaving.join().unwrap();
        let trace = session.read().wait().unwrap();
        end.wait();
        trace
    });
    let mut seen = names(&trace);
    seen.sort_unstable();
    assert_eq!(seen, ["asleep", "leaving"], "without a flush by the session");

    // A panic in the destructor of a data source's state ends neither the process nor the other writers of the thread.
    let fragile = std::thread::Builder::new().name("fragile".into()).spawn(|| {
        PANICS.trace(|context| {
            context.packet(|packet| {
                packet.for_testing().str("packet");
            });
        });
        esatto::instant!(TEST, "beside it");
    });
    fragile.unwrap().join().unwrap();
    let trace = session.stop().unwrap();
    assert_eq!(names(&trace), ["beside it"]);
    let packets = esatto_trace::PacketReader::new(&trace[..]);
    let texts = packets.filter(|packet| {
        let packet = packet.as_ref().unwrap();
        TracePacketReader::new(&packet.bytes).for_testing().is_some()
    });
    assert_eq!(texts.count(), 1);
}
