//! Promises of custom data sources, tested with a service inside this process. `tests/` of the
//! repository tests the same with Perfetto's programs.
//!
//! All tests share one memory with the service, and count on every packet. Tests that fill the
//! memory are in another program (`full_memory`).

use std::time::{Duration, Instant};

use recording::{config, packets, start};

mod a_body_runs_once_for_each_instance;
mod a_data_source_can_end_later;
mod a_flush_waits_for_data_sources;
mod callbacks_come_in_order;
mod incremental_state_begins_again;
mod recording;
mod unusable_sessions_are_refused;

/// Returns the texts of the test events in a trace, in order.
fn texts(trace: &[u8]) -> Vec<String> {
    let texts = packets(trace).into_iter().filter_map(|packet| packet.for_testing()?.str().map(<[u8]>::to_vec));
    texts.map(|text| String::from_utf8(text).expect("is text")).collect()
}

/// Waits for something that another thread does.
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what} does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}
