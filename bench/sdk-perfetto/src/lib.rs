//! A session with the service inside the process, as Perfetto's official Rust SDK offers it.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use perfetto_sdk::{
    heap_buffer::HeapBuffer,
    pb_msg::{PbMsg, PbMsgWriter},
    protos::config::{
        data_source_config::DataSourceConfig,
        trace_config::{TraceConfig, TraceConfigBufferConfig, TraceConfigDataSource},
        track_event::track_event_config::TrackEventConfig,
    },
    tracing_session::TracingSession,
};

thread_local! {
    /// A session stays on its thread.
    static SESSION: RefCell<Option<TracingSession>> = const { RefCell::new(None) };
}

/// Starts to record one category.
///
/// # Panics
///
/// If there can be no session.
pub fn record(category: &str) {
    let mut session = TracingSession::in_process().expect("a session");
    session.setup(&config(category));
    session.start_blocking();
    SESSION.set(Some(session));
}

/// The trace of what [`record`] started on this thread, if it was called.
#[must_use]
pub fn stop() -> Option<Vec<u8>> {
    SESSION.take().map(read)
}

/// The same as the runner's for the service.
fn config(category: &str) -> Vec<u8> {
    let writer = PbMsgWriter::new();
    let buffer = HeapBuffer::new(writer.stream_writer());
    let mut message = PbMsg::new(&writer).expect("a message");
    {
        let mut config = TraceConfig { msg: &mut message };
        config.set_buffers(|buffer: &mut TraceConfigBufferConfig| {
            buffer.set_size_kb(131_072);
        });
        config.set_data_sources(|source: &mut TraceConfigDataSource| {
            source.set_config(|config: &mut DataSourceConfig| {
                config.set_name("track_event");
                config.set_track_event_config(|config: &mut TrackEventConfig| {
                    config.set_enabled_categories(category);
                    config.set_disabled_categories("*");
                });
            });
        });
    }
    message.finalize();
    let mut bytes = vec![0; writer.stream_writer().get_written_size()];
    buffer.copy_into(&mut bytes);
    bytes
}

fn read(mut session: TracingSession) -> Vec<u8> {
    session.stop_blocking();
    let trace = Arc::new(Mutex::new(Vec::new()));
    let copy = Arc::clone(&trace);
    session.read_trace_blocking(move |data, _end| copy.lock().expect("nobody panics").extend_from_slice(data));
    std::mem::take(&mut trace.lock().expect("nobody panics"))
}
