//! Sessions with a service inside this process, and their traces.

use std::sync::LazyLock;

use esatto::schema::{DataSourceConfig, TestConfig, TraceConfig, TracePacketReader, trace_config};
use esatto::{Backend, Session, Tracing};
use esatto_protozero::{Fields, Value};

/// Connected once for all tests of this program.
static TRACING: LazyLock<Tracing> =
    LazyLock::new(|| Tracing::builder().in_process().shared_memory(256, 4).start().expect("connects"));

/// Makes a config with one entry for a data source for each number, which arrives as
/// `message_count`. A service waits ten minutes for the end of its data sources, which is longer
/// than a test may take.
pub(crate) fn config(name: &str, numbers: &[u32]) -> TraceConfig {
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

/// Starts a session.
pub(crate) fn start(config: TraceConfig) -> Session {
    LazyLock::force(&TRACING);
    Session::start(Backend::InProcess, config).expect("starts")
}

/// Returns the packets of a trace.
pub(crate) fn packets(trace: &[u8]) -> Vec<TracePacketReader<'_>> {
    Fields::new(trace)
        .filter_map(|field| match field.value {
            Value::Bytes(packet) if field.id == 1 => Some(TracePacketReader::new(packet)),
            _ => None,
        })
        .collect()
}
