//! Custom data sources: rows 4, 5, 8 to 21 as far as other programs have a say in them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use esatto::schema::trace_config::IncrementalStateConfig;
use esatto::schema::{DataSourceConfig, DataSourceDescriptor, TestConfig, TraceConfig, trace_config};
use esatto::{DataSource, Field, Flush, Setup, Source, Stop};
use esatto_protozero::Owned;
use esatto_tests::sdk::{Recorder, Scenario, Trace};
use esatto_tests::wait_until;

use super::texts;

struct Sampler {
    number: u32,
}

/// The callbacks, in order.
static CALLS: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Ends and flushes that are put off.
static STOPS: Mutex<Vec<Stop>> = Mutex::new(Vec::new());
static FLUSHES: Mutex<Vec<Flush>> = Mutex::new(Vec::new());

fn calls() -> MutexGuard<'static, Vec<String>> {
    CALLS.lock().unwrap()
}

impl DataSource for Sampler {
    type Config = Field<TestConfig, 1001>;
    type ThreadState = u32;
    type IncrementalState = u32;

    fn setup(setup: &Setup<'_, Self::Config>) -> Self {
        let number = setup.config().message_count.unwrap_or(0);
        calls().push(format!("setup {number}"));
        Self { number }
    }

    fn start(&self) {
        calls().push(format!("start {}", self.number));
    }

    fn stop(&self, stop: Stop) {
        calls().push(format!("stop {}", self.number));
        if self.number == LATE {
            STOPS.lock().unwrap().push(stop);
        }
    }
}

/// The number of a sampler that puts things off.
const LATE: u32 = 1000;

static SAMPLER: Source<Sampler> = Source::new("com.example.sampler").on_flush(|sampler, flush| {
    calls().push(format!("flush {} {:?}", sampler.number, flush.reason()));
    write("flushed");
    if sampler.number == LATE {
        FLUSHES.lock().unwrap().push(flush);
    }
});

fn config(numbers: &[u32]) -> TraceConfig {
    let entry = |&number| {
        let config = DataSourceConfig {
            name: Some("com.example.sampler".into()),
            for_testing: Some(TestConfig { message_count: Some(number), ..Default::default() }),
            ..Default::default()
        };
        trace_config::DataSource { config: Some(Box::new(config)), ..Default::default() }
    };
    TraceConfig {
        buffers: vec![trace_config::BufferConfig { size_kb: Some(4096), ..Default::default() }],
        data_sources: numbers.iter().map(entry).collect(),
        data_source_stop_timeout_ms: Some(600_000),
        ..Default::default()
    }
}

fn write(text: &str) {
    SAMPLER.trace(|context| {
        let now = context.now_ns();
        // It may have ended on the way here.
        let Some(number) = context.source().map(|source| source.number) else { return };
        context.packet(|packet| {
            packet.timestamp(now);
            packet.for_testing().str(format!("{text} {number}"));
        });
    });
}

fn register(recorder: &Recorder) -> esatto::Tracing {
    let tracing = recorder.builder().start().expect("the control thread starts");
    SAMPLER.register().expect("registers");
    recorder.wait_for_data_source(SAMPLER.name());
    tracing
}

mod case_8_and_9_eight_instances_live_and_the_ninth_does_not_matter {
    esatto_tests::scenario!(super::nine, super::check_nine);
}

fn nine(recorder: &Recorder) {
    let _tracing = register(recorder);
    let session = recorder.start(config(&[0, 1, 2, 3, 4, 5, 6, 7, 8]));
    write("traced");
    // The service would wait ten minutes for the ninth.
    recorder.finish(session);
    let calls = calls();
    let of = |what: &str| calls.iter().filter(|call| call.starts_with(what)).count();
    assert_eq!((of("setup"), of("start"), of("stop"), SAMPLER.refused()), (8, 8, 8, 1), "{calls:?}");
    assert!(calls[..8].iter().all(|call| call.starts_with("setup")), "{calls:?}");
}

fn check_nine(trace: &Trace) {
    let mut texts = texts(trace);
    texts.retain(|text| text.starts_with("traced"));
    texts.sort_unstable();
    assert_eq!(texts, (0..8).map(|number| format!("traced {number}")).collect::<Vec<_>>());
}

mod case_12_data_written_until_the_end_is_in_the_trace {
    esatto_tests::scenario!(super::late, super::check_late);
}

fn late(recorder: &Recorder) {
    let _tracing = register(recorder);
    let session = recorder.start(config(&[LATE]));
    let writer = std::thread::spawn(|| {
        // The flush at the end of the session comes first, and its answer is also delayed.
        let stop = wait_until("the stop", || {
            FLUSHES.lock().unwrap().clear();
            STOPS.lock().unwrap().pop()
        });
        write("between");
        SAMPLER.trace(|context| context.flush());
        drop(stop);
        wait_until("the end", || (!SAMPLER.is_enabled()).then_some(()));
        write("after");
    });
    recorder.finish(session);
    writer.join().expect("does not panic");
}

fn check_late(trace: &Trace) {
    let texts = texts(trace);
    assert!(texts.contains(&format!("between {LATE}")), "{texts:?}");
    assert!(!texts.iter().any(|text| text.starts_with("after")), "{texts:?}");
}

mod case_13_a_flush_waits {
    use super::*;
    // The first of the flushes.
    esatto_tests::scenario!(Scenario::new(flush).check(check_flush).tolerating(&["traced_flushes_failed"]));
}

fn flush(recorder: &Recorder) {
    let _tracing = register(recorder);
    let session = recorder.start(config(&[LATE, 5]));
    session.flush(Some(Duration::from_millis(50))).wait().expect_err("nobody answers");
    let writer = std::thread::spawn(|| {
        wait_until("the second flush", || (FLUSHES.lock().unwrap().len() == 2).then_some(()));
        write("kept back");
        SAMPLER.trace(|context| context.flush());
        FLUSHES.lock().unwrap().clear();
    });
    session.flush(Some(Duration::from_secs(30))).wait().expect("is answered");
    writer.join().expect("does not panic");
    recorder.save("trace", session.read().wait().expect("reads"));
    assert!(calls().contains(&"flush 5 Explicit".to_owned()), "{:?}", calls());
    std::thread::spawn(|| {
        let stop = wait_until("the stop", || {
            FLUSHES.lock().unwrap().clear();
            STOPS.lock().unwrap().pop()
        });
        stop.complete();
    });
    session.stop().expect("stops");
}

fn check_flush(trace: &Trace) {
    let texts = texts(trace);
    for text in [format!("kept back {LATE}"), "kept back 5".into(), format!("flushed {LATE}")] {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
}

mod cases_14_and_16_the_service_knows_the_descriptor {
    use super::*;
    esatto_tests::scenario!([ours, theirs] Scenario::new(descriptors));
}

static SILENT: Source<Sampler> = Source::new("com.example.silent");
static MUTE: Source<Sampler> = Source::new("com.example.mute").on_flush(|_, flush| drop(flush));

fn descriptors(recorder: &Recorder) {
    let _tracing = register(recorder);
    SILENT.register().expect("registers");
    let wish = DataSourceDescriptor { no_flush: Some(true), ..Default::default() };
    MUTE.register_with(&wish).expect("registers");
    recorder.wait_for_data_source(MUTE.name());
    let descriptor = |name: &str| {
        let state = recorder.harness().state();
        let at = state.data_sources.iter().position(|known| known == name).expect("is registered");
        DataSourceDescriptor::decode(&state.descriptors[at]).expect("is a descriptor")
    };
    let no_flush = [&SAMPLER, &SILENT, &MUTE].map(|source| descriptor(source.name()).no_flush);
    // A service need not pass on a `false`.
    assert_eq!(no_flush.map(|no| no.unwrap_or(false)), [false, true, true]);
    let before = descriptor(SILENT.name());
    assert_eq!((before.will_notify_on_start, before.will_notify_on_stop), (Some(true), Some(true)));
    assert_eq!(before.handles_incremental_state_clear, Some(true));

    let mut update = DataSourceDescriptor::default();
    update.gpu_counter_descriptor.get_or_insert_default().min_sampling_period_ns = Some(4711);
    SILENT.update_descriptor(&update).expect("is registered");
    let after = wait_until("the update", || Some(descriptor(SILENT.name())).filter(|after| *after != before));
    assert_eq!(after.gpu_counter_descriptor, update.gpu_counter_descriptor);
    assert_eq!(after.id, before.id, "it is the same data source");
}

mod case_18_incremental_state_is_cleared {
    use super::*;
    esatto_tests::scenario!(Scenario::new(clear));
}

fn clear(recorder: &Recorder) {
    let _tracing = register(recorder);
    let mut config = config(&[3]);
    config.incremental_state_config = Some(IncrementalStateConfig { clear_period_ms: Some(50), ..Default::default() });
    let session = recorder.start(config);
    let mut new = 0;
    wait_until("the state is cleared", || {
        SAMPLER.trace(|context| {
            new += u32::from(context.is_state_new());
            let parts = context.parts();
            *parts.thread_state += 1;
            *parts.incremental_state += 1;
            assert!(parts.incremental_state <= parts.thread_state);
        });
        (new == 3).then_some(())
    });
    drop(session);
}

mod case_5_instances_end_once_with_their_service {
    esatto_tests::scenario!([ours, theirs] super::restart, super::check_restart);
}

fn restart(recorder: &Recorder) {
    let _tracing = register(recorder);
    let session = recorder.start(config(&[LATE, 5]));
    write("lost");
    recorder.stop_service();
    let stop = wait_until("the stop", || STOPS.lock().unwrap().pop());
    wait_until("the end of the other", || {
        let instances: Vec<_> = SAMPLER.instances().map(|(_, instance)| instance.number).collect();
        (instances == [LATE]).then_some(())
    });
    drop(session);
    recorder.start_service();
    recorder.wait_for_data_source(SAMPLER.name());
    let session = recorder.start(config(&[6]));
    assert_eq!(SAMPLER.instances().count(), 2, "the one that takes its time keeps its place");
    drop(stop);
    wait_until("its end", || (SAMPLER.instances().count() == 1).then_some(()));
    write("new");
    recorder.finish(session);
    let mut stops: Vec<_> = calls().iter().filter(|call| call.starts_with("stop")).cloned().collect();
    stops.sort_unstable();
    assert_eq!(stops, [&format!("stop {LATE}"), "stop 5", "stop 6"]);
}

fn check_restart(trace: &Trace) {
    let texts = texts(trace);
    assert!(texts.contains(&"new 6".to_owned()), "{texts:?}");
    assert!(!texts.iter().any(|text| text.starts_with("lost")), "{texts:?}");
}

mod case_20_threads_trace_while_sessions_come_and_go {
    esatto_tests::scenario!(super::race, super::check_race);
}

fn race(recorder: &Recorder) {
    static ROUND: AtomicU32 = AtomicU32::new(0);
    let _tracing = register(recorder);
    let threads: Vec<_> = (0..2)
        .map(|_| {
            std::thread::spawn(|| {
                while ROUND.load(Ordering::Relaxed) < 10 {
                    write("race");
                }
            })
        })
        .collect();
    for number in 0..10 {
        let session = recorder.start(config(&[number]));
        write("last");
        recorder.finish_as(if number == 9 { "trace" } else { "other" }, session);
        ROUND.fetch_add(1, Ordering::Relaxed);
    }
    threads.into_iter().for_each(|thread| thread.join().expect("does not panic"));
}

fn check_race(trace: &Trace) {
    let texts = texts(trace);
    assert!(texts.contains(&"last 9".to_owned()), "{} texts", texts.len());
    assert!(texts.iter().all(|text| text.ends_with(" 9") || text.starts_with("flushed")), "of another session");
}
