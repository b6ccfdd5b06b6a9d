//! Hundreds of threads that trace once and then sleep leave chunks for others, although each had
//! one.

#![allow(missing_docs, reason = "tests")]

use std::sync::Barrier;

use esatto::schema::data_source_config::BufferExhaustedPolicy;
use esatto::{Backend, Session, Tracing};

esatto::categories! {
    static TEST = "idle";
}

const THREADS: usize = 500;
/// 16 pages.
const MEMORY_KB: u32 = 64;

#[test]
fn every_thread_is_in_the_trace() {
    let _tracing = Tracing::builder().in_process().shared_memory(MEMORY_KB, 4).categories(CATEGORIES).start().unwrap();
    let mut config = esatto::track_events(4096);
    // A thread that finds no chunk waits. With the default, chance would decide how many lose their
    // event.
    let source = config.data_sources[0].config.as_mut().unwrap();
    source.buffer_exhausted_policy = Some(BufferExhaustedPolicy::BUFFER_EXHAUSTED_STALL_THEN_DROP);
    let session = Session::start(Backend::InProcess, config).unwrap();
    let (traced, end) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let (traced, end) = (&traced, &end);
            std::thread::Builder::new()
                .stack_size(64 << 10)
                .spawn_scoped(scope, move || {
                    esatto::instant!(TEST, "once", number = number);
                    traced.wait();
                    end.wait();
                })
                .unwrap();
        }
        traced.wait();
        esatto::instant!(TEST, "last");
        let events = esatto_trace::events(&session.stop().unwrap());
        end.wait();
        let once = events.iter().filter(|event| event.name.as_deref() == Some("once")).count();
        assert_eq!(once, THREADS);
        assert!(events.iter().any(|event| event.name.as_deref() == Some("last")));
    });
}
