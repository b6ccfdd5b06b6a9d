//! The rows of `docs/spec/track-event.md` §25. The tests find facts that the trace processor does
//! not show (order of packets, flags, number of definitions) in the packets.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use esatto::schema::{DataSourceConfig, TraceConfig, TracePacketReader, TrackEventConfig, trace_config};
use esatto_tests::sdk::Trace;

mod a_sequence_begins_as_with_perfettos_library;
mod case_01_a_sequence_begins_with_its_clocks_its_thread_and_its_process;
mod case_02_incremental_timestamps_add_up;
mod case_03_timestamps_may_be_absolute;
mod case_04_a_clear_starts_sequences_over;
mod case_05_categories_are_chosen_by_the_config;
mod case_06_arguments_are_evaluated_once_and_only_if_wanted;
mod case_07_static_names_are_written_once;
mod case_08_annotations_of_every_type;
mod case_09_tracks_of_every_kind;
mod case_10_counters;
mod case_11_the_time_of_a_thread_goes_with_its_events;
mod case_12_flows;
mod case_13_times_of_other_clocks;
mod case_14_states;
mod case_15_operations_places_and_messages;
mod case_16_legacy_events;
mod case_17_observers_are_told_of_sessions;
mod case_18_a_live_thread_is_scraped;
mod case_19_an_empty_event;
mod services_list_the_categories;
mod the_trace_clock_can_be_chosen;
mod typed_arguments;

/// A config with one data source of track events.
fn config(events: TrackEventConfig) -> TraceConfig {
    let source = DataSourceConfig {
        name: Some("track_event".into()),
        track_event_config: Some(Box::new(events)),
        ..Default::default()
    };
    TraceConfig {
        buffers: vec![trace_config::BufferConfig { size_kb: Some(1024), ..Default::default() }],
        data_sources: vec![trace_config::DataSource { config: Some(Box::new(source)), ..Default::default() }],
        ..Default::default()
    }
}

/// All categories, but as a change to the config says.
fn all(change: impl FnOnce(&mut TrackEventConfig)) -> TraceConfig {
    let mut events = TrackEventConfig { enabled_categories: vec!["*".into()], ..Default::default() };
    change(&mut events);
    config(events)
}

/// The packets of each sequence that has track events, in the order in which the sequences came.
fn sequences(packets: &[esatto_trace::Packet]) -> Vec<Vec<TracePacketReader<'_>>> {
    let mut order = Vec::new();
    let mut sequences: BTreeMap<u32, Vec<TracePacketReader<'_>>> = BTreeMap::new();
    for packet in packets {
        let packet = TracePacketReader::new(&packet.bytes);
        let id = packet.trusted_packet_sequence_id().unwrap_or(0);
        if !order.contains(&id) {
            order.push(id);
        }
        sequences.entry(id).or_default().push(packet);
    }
    let mut all: Vec<_> = order.into_iter().filter_map(|id| sequences.remove(&id)).collect();
    all.retain(|packets| packets.iter().any(|packet| packet.track_event().is_some()));
    all
}

/// The nanoseconds of `CLOCK_BOOTTIME`.
fn boot_ns() -> i64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

/// Does something again and again for a time.
fn keep_on(duration: Duration, mut what: impl FnMut()) {
    let begun = Instant::now();
    while begun.elapsed() < duration {
        what();
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The names of all events of a trace, as our own reader finds them.
fn names(trace: &Trace) -> Vec<String> {
    trace.read().events.into_iter().filter_map(|event| event.name).collect()
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}
