//! The cases of the group `sdk`, with Perfetto's official Rust SDK: `--place system|in-process`, `--shm-kb N`.

use std::hint::black_box;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use bench_harness::{Batch, Case, Finished, Operation, Options, Program, TEXT};
use perfetto_sdk::{
    heap_buffer::HeapBuffer,
    pb_msg::{PbMsg, PbMsgWriter},
    producer::*,
    protos::config::{
        data_source_config::DataSourceConfig,
        trace_config::{TraceConfig, TraceConfigBufferConfig, TraceConfigDataSource},
        track_event::track_event_config::TrackEventConfig,
    },
    tracing_session::TracingSession,
    track_event::*,
    track_event_begin, track_event_categories, track_event_category_enabled, track_event_counter, track_event_end,
    track_event_instant,
};

track_event_categories! {
    pub mod categories {
        ( "bench", "", [] ),
        ( "off", "", [] ),
    }
}
use categories as perfetto_te_ns;

static DEPTH: OnceLock<TrackEventTrack> = OnceLock::new();
/// In-process: the program's own.
static SESSION: Mutex<Option<TracingSession>> = Mutex::new(None);

const CASES: &[Case] = &[
    Case::new(Operation::Disabled, disabled),
    Case::new(Operation::DisabledArguments, disabled_with_arguments),
    Case::new(Operation::Pair, pair),
    Case::new(Operation::Arguments, pair_with_arguments),
    Case::new(Operation::Counter, counter),
    Case::new(Operation::Instant, instant),
    Case::new(Operation::Flow, flow),
];

fn disabled(batch: &mut Batch) {
    batch.time(|i| {
        track_event_instant!("off", "off");
        black_box(i);
    });
}

fn disabled_with_arguments(batch: &mut Batch) {
    let text = black_box(TEXT);
    batch.time(|i| {
        track_event_instant!("off", "off", |ctx: &mut EventContext| {
            ctx.add_debug_arg("number", TrackEventDebugArg::Uint64(i));
            ctx.add_debug_arg("text", TrackEventDebugArg::String(text));
        });
        black_box(i);
    });
}

fn pair(batch: &mut Batch) {
    batch.time(|_| {
        track_event_begin!("bench", "pair");
        track_event_end!("bench");
    });
}

fn pair_with_arguments(batch: &mut Batch) {
    let text = black_box(TEXT);
    batch.time(|i| {
        track_event_begin!("bench", "arguments", |ctx: &mut EventContext| {
            ctx.add_debug_arg("number", TrackEventDebugArg::Uint64(i));
            ctx.add_debug_arg("text", TrackEventDebugArg::String(text));
        });
        track_event_end!("bench");
    });
}

fn counter(batch: &mut Batch) {
    let depth = DEPTH.get().expect("made at the start");
    batch.time(|i| {
        track_event_counter!("bench", |ctx: &mut EventContext| {
            ctx.set_track(depth);
            ctx.set_counter(TrackEventCounter::Int64(i as i64));
        });
    });
}

fn instant(batch: &mut Batch) {
    batch.time(|_| {
        track_event_instant!("bench", "instant");
    });
}

fn flow(batch: &mut Batch) {
    batch.time(|i| {
        track_event_instant!("bench", "flow", |ctx: &mut EventContext| {
            ctx.set_flow(&TrackEventFlow::process_scoped_flow(i));
        });
    });
}

fn start(options: &Options) {
    let in_process = options.get("place") == Some("in-process");
    let backend = if in_process { Backends::IN_PROCESS } else { Backends::SYSTEM };
    let mut args = ProducerInitArgsBuilder::new().backends(backend);
    if let Some(kb) = options.get("shm-kb") {
        args = args.shmem_size_hint_kb(kb.parse().expect("KiB"));
    }
    Producer::init(args.build());
    TrackEvent::init();
    categories::register().expect("first registration");
    if in_process {
        let mut session = TracingSession::in_process().expect("a session");
        session.setup(&config());
        session.start_blocking();
        *SESSION.lock().expect("nobody panics") = Some(session);
    }
    let start = Instant::now();
    while !track_event_category_enabled!("bench") {
        assert!(start.elapsed() < Duration::from_secs(60), "nobody records the category `bench`");
        std::thread::sleep(Duration::from_millis(2));
    }
    let process = TrackEventTrack::process_track_uuid();
    let depth = TrackEventTrack::register_counter_track("depth", process).expect("a counter track");
    assert!(DEPTH.set(depth).is_ok(), "only once");
}

/// The same as the runner's for the service.
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
                    config.set_enabled_categories("bench");
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

/// Events are handed over by a thread of the library's own; the flag makes this thread's last ones go now.
fn finish() -> Finished {
    track_event_instant!("bench", "last", |ctx: &mut EventContext| {
        ctx.set_flush();
    });
    std::thread::sleep(Duration::from_millis(200));
    let session = SESSION.lock().expect("nobody panics").take();
    Finished { events: 1, trace: session.map(read) }
}

fn read(mut session: TracingSession) -> Vec<u8> {
    session.stop_blocking();
    let trace = Arc::new(Mutex::new(Vec::new()));
    let copy = Arc::clone(&trace);
    session.read_trace_blocking(move |data, _end| copy.lock().expect("nobody panics").extend_from_slice(data));
    std::mem::take(&mut trace.lock().expect("nobody panics"))
}

fn main() {
    bench_harness::run(&Program { cases: CASES, start, finish });
}
