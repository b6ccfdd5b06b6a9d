//! Threads end. Their events are handed over, events after the end are not recorded, and a thread
//! that flushes at its end flushes for all.

#![allow(missing_docs, reason = "tests")]

use core::cell::OnceCell;
use std::sync::Barrier;
use std::time::Duration;

use esatto::schema::{DataSourceConfig, TracePacketReader};
use esatto::{Backend, DataSource, Session, SessionConfig, Setup, Source, Tracing};

esatto::categories! {
    static TEST = "end";
}

/// Destroyed after the state of the thread, if it is made first: thread-locals are destroyed in the
/// opposite order.
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

/// State of threads whose destructor panics.
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
        // Not on the control thread, which would be another test.
        assert_ne!(std::thread::current().name(), Some("fragile"), "the thread ends");
    }
}

static PANICS: Source<Panics> = Source::new("panics");

fn names(trace: &[u8]) -> Vec<String> {
    esatto_trace::events(trace).into_iter().filter_map(|event| event.name).collect()
}

#[test]
fn an_ending_thread_hands_over_its_events() {
    PANICS.register().unwrap();
    let tracing: &'static Tracing =
        Box::leak(Box::new(Tracing::builder().in_process().categories(CATEGORIES).start().unwrap()));
    let panics = DataSourceConfig { name: Some("panics".into()), ..Default::default() };
    let config = SessionConfig::new().buffer_size_kb(1024).data_source(panics);
    let session = Session::start(Backend::InProcess, config).unwrap();

    // A thread sleeps, with an event in a chunk that is far from full, while another one ends and
    // flushes.
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

    // A panic in the destructor of a data source's state does not end the process or the other
    // writers of the thread.
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
