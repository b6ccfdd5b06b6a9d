use esatto::schema::data_source_config::BufferExhaustedPolicy;

use super::{read, start};

esatto::categories! { static FLOOD = "flood"; }

/// More than the shared memory holds, faster than the service reads. With 256 KiB and 20 bytes per
/// event, something is probably lost, but not certainly.
const EVENTS: u64 = 100_000;

#[test]
fn the_sequence_announces_its_names_again() {
    let session = start(&FLOOD, |_| {}, BufferExhaustedPolicy::BUFFER_EXHAUSTED_DROP);
    for number in 0..EVENTS {
        esatto::instant!(FLOOD, "event", number = number);
    }
    // Waits until there is memory again.
    super::TRACING.flush(std::time::Duration::from_secs(10));
    esatto::instant!(FLOOD, "after");
    let trace = read(session);
    let names = trace.events.iter().filter(|e| e.name.as_deref() == Some("event")).count();
    assert!(names > 0);
    let after = trace.events.last().expect("events");
    assert_eq!(after.name.as_deref(), Some("after"), "the last event was read with its name");
    assert!(trace.events.iter().all(|e| e.name.is_some()), "no event lost its name");
}
