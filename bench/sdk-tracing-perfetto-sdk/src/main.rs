//! The cases of the group `sdk`, with the layer of Perfetto's official Rust SDK: `--session in-process|none`.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bench_harness::{Finished, Options, Program};
use perfetto_sdk::{
    heap_buffer::HeapBuffer,
    pb_msg::{PbMsg, PbMsgWriter},
    protos::config::{
        data_source_config::DataSourceConfig,
        trace_config::{TraceConfig, TraceConfigBufferConfig, TraceConfigDataSource},
        track_event::track_event_config::TrackEventConfig,
    },
    track_event_category_enabled,
    tracing_session::TracingSession,
};
use tracing_perfetto_sdk::{PerfettoLayer, perfetto_te_ns};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

static SESSION: Mutex<Option<TracingSession>> = Mutex::new(None);

fn start(options: &Options) {
    tracing_perfetto_sdk::init_in_process();
    tracing_subscriber::registry().with(PerfettoLayer::new()).init();
    if options.get("session") == Some("none") {
        return;
    }
    let mut session = TracingSession::in_process().expect("a session");
    session.setup(&config());
    session.start_blocking();
    *SESSION.lock().expect("nobody panics") = Some(session);
    let start = Instant::now();
    while !track_event_category_enabled!("tracing") {
        assert!(start.elapsed() < Duration::from_secs(60), "nobody records the category `tracing`");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn config() -> Vec<u8> {
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
                    config.set_enabled_categories("tracing");
                });
            });
        });
    }
    message.finalize();
    let mut bytes = vec![0; writer.stream_writer().get_written_size()];
    buffer.copy_into(&mut bytes);
    bytes
}

fn finish() -> Finished {
    let session = SESSION.lock().expect("nobody panics").take();
    Finished { events: 0, trace: session.map(read) }
}

fn read(mut session: TracingSession) -> Vec<u8> {
    session.stop_blocking();
    let trace = Arc::new(Mutex::new(Vec::new()));
    let copy = Arc::clone(&trace);
    session.read_trace_blocking(move |data, _end| copy.lock().expect("nobody panics").extend_from_slice(data));
    std::mem::take(&mut trace.lock().expect("nobody panics"))
}

fn main() {
    bench_harness::run(&Program { cases: bench_sdk_tracing::CASES, start, finish });
}
