//! Sessions, with configs that are encoded with the crate's own messages.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use perfetto_sdk::heap_buffer::HeapBuffer;
use perfetto_sdk::pb_msg::{PbMsg, PbMsgWriter};
use perfetto_sdk::producer::Producer;
use perfetto_sdk::protos::config::data_source_config::DataSourceConfig;
use perfetto_sdk::protos::config::trace_config::{
    TraceConfig, TraceConfigBufferConfig, TraceConfigDataSource, TraceConfigIncrementalStateConfig,
    TraceConfigTriggerConfig, TraceConfigTriggerConfigTrigger, TriggerConfigTriggerMode,
};
use perfetto_sdk::protos::config::track_event::track_event_config::TrackEventConfig;
use perfetto_sdk::tracing_session::{TracingSession, TracingSessionError};

static SYSTEM: AtomicBool = AtomicBool::new(false);

pub fn use_system(on: bool) {
    SYSTEM.store(on, Ordering::Relaxed);
}

/// Encodes a message.
pub fn encode(write: impl Fn(&mut PbMsg<'_>)) -> Vec<u8> {
    let writer = PbMsgWriter::new();
    let heap = HeapBuffer::new(writer.stream_writer());
    let mut msg = PbMsg::new(&writer).expect("it has somewhere to write");
    write(&mut msg);
    let size = msg.finalize();
    assert_eq!(size, writer.stream_writer().get_written_size());
    let mut bytes = vec![0; size];
    heap.copy_into(&mut bytes);
    bytes
}

/// A config with one data source, whose incremental state is cleared all the time.
pub fn config(name: &str, categories: &[&str], trigger: Option<&str>) -> Vec<u8> {
    encode(|msg| {
        let mut config = TraceConfig { msg };
        config.set_buffers(|buffer: &mut TraceConfigBufferConfig| {
            buffer.set_size_kb(4096);
        });
        config.set_data_sources(|source: &mut TraceConfigDataSource| {
            source.set_config(|config: &mut DataSourceConfig| {
                config.set_name(name);
                config.set_track_event_config(|events: &mut TrackEventConfig| {
                    events.set_disabled_categories("*");
                    categories.iter().for_each(|category| {
                        events.set_enabled_categories(*category);
                    });
                });
            });
        });
        if categories.is_empty() {
            config.set_incremental_state_config(|state: &mut TraceConfigIncrementalStateConfig| {
                state.set_clear_period_ms(10);
            });
        }
        if let Some(trigger) = trigger {
            config.set_trigger_config(|triggers: &mut TraceConfigTriggerConfig| {
                triggers.set_trigger_mode(TriggerConfigTriggerMode::StopTracing);
                triggers.set_trigger_timeout_ms(60_000);
                triggers.set_triggers(|one: &mut TraceConfigTriggerConfigTrigger| {
                    one.set_name(trigger).set_stop_delay_ms(1);
                });
            });
        }
    })
}

fn create() -> Result<TracingSession, TracingSessionError> {
    if SYSTEM.load(Ordering::Relaxed) { TracingSession::system() } else { TracingSession::in_process() }
}

/// Waits, because other processes need a little time.
pub fn wait_until(what: impl Fn() -> bool) {
    while !what() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub fn start(config: &[u8], is_there: impl Fn() -> bool) -> TracingSession {
    let mut session = create().expect("a session");
    session.setup(config);
    session.start_blocking();
    wait_until(is_there);
    session
}

/// Stops the session and writes its trace to a file.
pub fn finish(mut session: TracingSession, file: &Path) -> Vec<u8> {
    session.stop_blocking();
    let trace = Arc::new(Mutex::new(Vec::new()));
    let ends = Arc::new(AtomicUsize::new(0));
    let (to, counter) = (trace.clone(), ends.clone());
    session.read_trace_blocking(move |bytes, has_more| {
        to.lock().unwrap().extend_from_slice(bytes);
        counter.fetch_add(usize::from(!has_more), Ordering::Relaxed);
    });
    assert_eq!(ends.load(Ordering::Relaxed), 1);
    let trace = trace.lock().unwrap().clone();
    std::fs::write(file, &trace).expect("a file");
    trace
}

/// Flushes in both ways; the second one reports its result.
pub fn flush(session: &mut TracingSession) {
    session.flush_blocking(Duration::from_secs(5));
    let answer = Arc::new(AtomicUsize::new(0));
    let to = answer.clone();
    session.flush_async(Duration::from_secs(5), move |success| to.store(1 + usize::from(success), Ordering::Relaxed));
    wait_until(|| answer.load(Ordering::Relaxed) != 0);
    assert_eq!(answer.load(Ordering::Relaxed), 2);
}

/// Also starts a session without waiting.
pub fn a_trigger_ends_it() {
    let mut session = create().expect("a session");
    session.setup(&config("nobody", &["*"], Some("the trigger")));
    session.start_async();
    session.flush_blocking(Duration::from_secs(5));
    Producer::activate_trigger("the trigger", Duration::from_secs(5)).expect("a good name");
    session.stop_blocking();
    assert_eq!(TracingSessionError::CreateError.to_string(), "Failed to create tracing session.");
}
