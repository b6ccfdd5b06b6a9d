//! Promises of custom data sources, held against a service inside this process. What Perfetto's programs say to the same is tested in `tests/`.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use esatto::schema::{DataSourceConfig, TestConfig, TraceConfig, TracePacketReader, trace_config};
use esatto::{Backend, Session, Tracing};
use esatto_protozero::{Fields, Value};

mod a_body_runs_once_for_each_instance;
mod a_data_source_can_end_later;
mod a_flush_waits_for_data_sources;
mod a_full_memory_is_survived;
mod callbacks_come_in_order;
mod incremental_state_begins_anew;
mod stops_may_race_with_trace_points;
mod what_cannot_be_used_is_refused;

/// Connected once for all tests of this program.
static TRACING: LazyLock<Tracing> = LazyLock::new(|| Tracing::builder().in_process().start().expect("connects"));

/// A config with one entry for a data source. The number arrives as `message_count`; a service ends a session whose data sources
/// do not end in ten minutes, which is longer than a test may take.
fn config(name: &str, numbers: &[u32]) -> TraceConfig {
    TraceConfig {
        buffers: vec![trace_config::BufferConfig { size_kb: Some(4096), ..Default::default() }],
        data_sources: numbers.iter().map(|&number| entry(name, number)).collect(),
        data_source_stop_timeout_ms: Some(600_000),
        ..Default::default()
    }
}

fn entry(name: &str, number: u32) -> trace_config::DataSource {
    let test = TestConfig { message_count: Some(number), ..Default::default() };
    let config = DataSourceConfig { name: Some(name.into()), for_testing: Some(test), ..Default::default() };
    trace_config::DataSource { config: Some(Box::new(config)), ..Default::default() }
}

fn start(config: TraceConfig) -> Session {
    LazyLock::force(&TRACING);
    Session::start(Backend::InProcess, config).expect("starts")
}

/// The packets of a trace.
fn packets(trace: &[u8]) -> Vec<TracePacketReader<'_>> {
    Fields::new(trace)
        .filter_map(|field| match field.value {
            Value::Bytes(packet) if field.id == 1 => Some(TracePacketReader::new(packet)),
            _ => None,
        })
        .collect()
}

/// What test events of a trace say, in the order of the trace.
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
