//! Data sources: every callback and option.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use perfetto_sdk::data_source::{
    Clear, DataSource, DataSourceArgs, DataSourceArgsBuilder, DataSourceBufferExhaustedPolicy, DataSourceError,
    DataSourceTimestamp, FlushGuard, IncrementalState, OnFlushArgs, OnSetupArgs, OnStartArgs, OnStopArgs, StopGuard,
    TraceContext, TraceContextBase,
};
use perfetto_sdk::pb_decoder::{PbDecoder, PbDecoderField};
use perfetto_sdk::protos::trace::test_event::{TestEvent, TestEventTestPayload};
use perfetto_sdk::protos::trace::trace::TraceFieldNumber;
use perfetto_sdk::protos::trace::trace_packet::{TracePacket, TracePacketFieldNumber};

use crate::session::{config, finish, flush, start, wait_until};

pub fn before_initialisation() {
    let source = DataSource::new();
    assert!(!source.is_enabled());
    source.trace(|_: &mut TraceContext<'_>| panic!("nobody records"));
}

pub fn everything(folder: &Path) {
    timestamps();
    callbacks(folder);
    own_state(folder);
    policies();
}

fn timestamps() {
    let now = DataSourceTimestamp::now();
    let DataSourceTimestamp::Boot(time) = now else { panic!("{now:?}") };
    assert_eq!((now.clock_id(), u128::from(now.timestamp()), now.as_duration()), (6, time.as_nanos(), time));
    assert!(DataSourceTimestamp::now().timestamp() >= now.timestamp());
    let second = Duration::from_secs(1);
    assert_eq!(DataSourceTimestamp::Monotonic(second).clock_id(), 3);
    let custom = DataSourceTimestamp::Custom { id: 64, value: second };
    assert_eq!((custom.clock_id(), custom.timestamp(), custom.as_duration()), (64, 1_000_000_000, second));
}

/// A small packet.
fn write(context: &mut TraceContextBase, text: &str) {
    context.add_packet(|packet: &mut TracePacket<'_, '_>| {
        packet.set_timestamp(DataSourceTimestamp::now().timestamp());
        packet.set_timestamp_clock_id(6);
        packet.set_for_testing(|event: &mut TestEvent<'_, '_>| {
            event.set_str(text).set_seq_value(1).set_counter(u64::MAX).set_is_last(true);
        });
    });
}

fn callbacks(folder: &Path) {
    let calls = Arc::new(Mutex::new(String::new()));
    let note = |what: char| {
        let calls = calls.clone();
        move || calls.lock().unwrap().push(what)
    };
    let (setup, started, stop, flushed) = (note('u'), note('s'), note('e'), note('f'));
    let stopper: Arc<Mutex<Option<StopGuard>>> = Arc::default();
    let flusher: Arc<Mutex<Option<FlushGuard>>> = Arc::default();
    let (to_stopper, to_flusher) = (stopper.clone(), flusher.clone());
    let args: DataSourceArgs = DataSourceArgsBuilder::new()
        .buffer_exhausted_policy(DataSourceBufferExhaustedPolicy::StallAndDrop)
        .buffer_exhausted_policy_configurable(true)
        .will_notify_on_stop(true)
        .handles_incremental_state_clear(true)
        .on_setup(move |instance: u32, config: &[u8], _: &mut OnSetupArgs| {
            assert_eq!(instance, 0);
            let is_name = |field| matches!(field, Ok((1, PbDecoderField::Delimited(b"rust.callbacks"))));
            assert!(PbDecoder::new(config).any(is_name));
            setup();
        })
        .on_start(move |_: u32, _: &mut OnStartArgs| started())
        .on_stop(move |_: u32, args: &mut OnStopArgs| {
            stop();
            *to_stopper.lock().unwrap() = Some(args.postpone());
        })
        .on_flush(move |_: u32, args: &mut OnFlushArgs| {
            flushed();
            *to_flusher.lock().unwrap() = Some(args.postpone());
        })
        .build();
    let mut source = DataSource::new();
    source.register("rust.callbacks", args).expect("the first of this name");
    let again = source.register("rust.callbacks", DataSourceArgsBuilder::new().build());
    assert_eq!(again, Err(DataSourceError::AlreadyRegisteredError));
    assert_eq!(DataSourceError::RegisterError.to_string(), "Failed to register data source.");

    let source: &'static DataSource<'static> = Box::leak(Box::new(source));
    let mut session = start(&config("rust.callbacks", &[], None), || source.is_enabled());
    wait_until(|| calls.lock().unwrap().as_str() == "us");
    // The next flush and this thread drop the flusher, which ends the flush.
    let ending = {
        let flusher = flusher.clone();
        let over = Arc::new(AtomicBool::new(false));
        let stop = over.clone();
        let thread = std::thread::spawn(move || {
            while !stop.load(SeqCst) {
                drop(flusher.lock().unwrap().take());
                drop(stopper.lock().unwrap().take());
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        (over, thread)
    };
    let mut turns = 0;
    source.trace(|context: &mut TraceContext<'_>| {
        assert_eq!(context.instance_index(), 0);
        write(context, "small");
        context.with_incremental_state(|context: &mut TraceContext<'_>, state: &mut IncrementalState| {
            assert!(std::mem::replace(&mut state.was_cleared, false));
            write(context, "with state");
        });
        let large = "x".repeat(10_000);
        context.add_packet(|packet: &mut TracePacket<'_, '_>| {
            packet.set_for_testing(|event: &mut TestEvent<'_, '_>| {
                event.set_str("large");
                event.set_payload(|payload: &mut TestEventTestPayload<'_, '_>| {
                    for _ in 0..5 {
                        payload.set_str(&large);
                        payload.set_nested(|nested: &mut TestEventTestPayload<'_, '_>| {
                            nested.set_single_string(&large).set_single_int(-5);
                        });
                    }
                });
            });
        });
        write(context, "behind");
        turns += 1;
    });
    assert_eq!(turns, 1);
    let flushed = Arc::new(AtomicU32::new(0));
    let counter = flushed.clone();
    source.trace(|context: &mut TraceContext<'_>| {
        let counter = counter.clone();
        context.flush(move || {
            counter.fetch_add(1, SeqCst);
        });
    });
    wait_until(|| flushed.load(SeqCst) == 1);
    flush(&mut session);
    // The service clears the state, and the program makes it again.
    wait_until(|| {
        let mut cleared = false;
        source.trace(|context: &mut TraceContext<'_>| {
            context.with_incremental_state(|_, state| cleared |= std::mem::replace(&mut state.was_cleared, false));
        });
        cleared
    });
    let trace = finish(session, &folder.join("data_source"));
    ending.0.store(true, SeqCst);
    ending.1.join().expect("no panic");
    wait_until(|| !source.is_enabled());
    let calls = calls.lock().unwrap().clone();
    assert!(calls.starts_with("usff") && calls.ends_with('e'), "{calls}");
    assert_eq!(count_test_events(&trace), 4);
}

/// Uses the crate's decoder and its numbers of fields.
fn count_test_events(trace: &[u8]) -> usize {
    const PACKET: u32 = TraceFieldNumber::Packet as u32;
    const FOR_TESTING: u32 = TracePacketFieldNumber::ForTesting as u32;
    let packets = PbDecoder::new(trace).filter_map(|field| match field {
        Ok((PACKET, PbDecoderField::Delimited(packet))) => Some(packet),
        _ => None,
    });
    packets.filter(|packet| PbDecoder::new(packet).any(|field| matches!(field, Ok((FOR_TESTING, _))))).count()
}

/// State that survives a clear.
#[derive(Default)]
struct Counter {
    clears: u32,
    events: u32,
}

impl Clear for Counter {
    fn clear(&mut self) {
        self.clears += 1;
    }
}

fn own_state(folder: &Path) {
    let mut source = DataSource::<'static, Counter>::new_with_incremental_state_type();
    let args = DataSourceArgsBuilder::new().handles_incremental_state_clear(true).will_notify_on_stop(false);
    source.register("rust.state", args.build()).expect("the first of this name");
    let source: &'static DataSource<'static, Counter> = Box::leak(Box::new(source));
    let session = start(&config("rust.state", &[], None), || source.is_enabled());
    let (mut clears, mut last) = (0, 0);
    while clears < 2 {
        source.trace(|context: &mut TraceContext<'_, Counter>| {
            context.with_incremental_state(|context, state: &mut Counter| {
                state.events += 1;
                assert!(state.events > last, "it is the same all the time");
                (clears, last) = (state.clears, state.events);
                if last == 1 {
                    write(context, "counted");
                }
            });
        });
        std::thread::sleep(Duration::from_millis(1));
    }
    let trace = finish(session, &folder.join("own_state"));
    assert_eq!(count_test_events(&trace), 1);
    let mut kept = IncrementalState { was_cleared: false };
    kept.clear();
    assert!(kept.was_cleared);
}

fn policies() {
    for policy in [DataSourceBufferExhaustedPolicy::Drop, DataSourceBufferExhaustedPolicy::StallAndAbort] {
        let mut source = DataSource::new();
        let args = DataSourceArgsBuilder::new().buffer_exhausted_policy(policy).build();
        source.register("rust.policy", args).expect("another one");
        assert!(!source.is_enabled());
        Box::leak(Box::new(source));
    }
}
