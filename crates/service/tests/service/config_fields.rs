//! Every field of a TraceConfig and a DataSourceConfig is accepted, kept and passed on, even if it
//! has no effect here (`docs/spec/service.md §7, §8`). Tests below check the effect of the general
//! fields.

use esatto_ports::Rpc as _;
use esatto_protozero::{HeapBuffer, Owned};
use esatto_schema::trace_config::{
    AndroidReportConfig, BufferConfig, BuiltinDataSource, CmdTraceStartDelay, CompressionType, FFlushMode,
    GuardrailOverrides, IncidentReportConfig, IncrementalStateConfig, LockdownModeOperation, ProducerConfig,
    SessionSemaphore, StatsdLogging, StatsdMetadata, TriggerConfig, WriteFlushMode, buffer_config, trigger_config,
};
use esatto_schema::{
    BuiltinClock, DataSourceConfig, PriorityBoostConfig, TraceAttributes, TraceConfig, TracePacketReader, TraceReader,
    trace_attributes,
};
use esatto_service::{FileId, TimerClock};

use crate::world::{World, buffer, config, source};

/// A config for each field, and how it is called.
fn rows() -> Vec<(&'static str, TraceConfig)> {
    let plain = || config(&["ds"]);
    let builtin = |builtin| TraceConfig { builtin_data_sources: Some(builtin), ..plain() };
    let with_buffer = |buffer| TraceConfig { buffers: vec![buffer], ..plain() };
    let streamed = || TraceConfig { write_into_file: Some(true), ..plain() };
    let attribute = trace_attributes::Attribute { key: Some("k".into()), ..Default::default() };
    let trigger = trigger_config::Trigger {
        name: Some("t".into()),
        stop_delay_ms: Some(0),
        max_per_24_h: Some(3),
        skip_probability: Some(0.5),
        ..Default::default()
    };
    let mut rows = vec![
        ("buffers.size_kb", with_buffer(buffer(12))),
        (
            "buffers.fill_policy",
            with_buffer(BufferConfig { fill_policy: Some(buffer_config::FillPolicy::DISCARD), ..buffer(4) }),
        ),
        (
            "buffers.fill_policy, unknown",
            with_buffer(BufferConfig { fill_policy: Some(buffer_config::FillPolicy(77)), ..buffer(4) }),
        ),
        ("buffers.transfer_on_clone", with_buffer(BufferConfig { transfer_on_clone: Some(true), ..buffer(4) })),
        ("buffers.clear_before_clone", with_buffer(BufferConfig { clear_before_clone: Some(true), ..buffer(4) })),
        ("buffers.name", with_buffer(BufferConfig { name: Some("b".into()), ..buffer(4) })),
        (
            "buffers.experimental_mode",
            with_buffer(BufferConfig {
                experimental_mode: Some(buffer_config::ExperimentalMode::TRACE_BUFFER_V2),
                ..buffer(4)
            }),
        ),
        ("duration_ms", TraceConfig { duration_ms: Some(1234), ..plain() }),
        ("enable_extra_guardrails", TraceConfig { enable_extra_guardrails: Some(true), ..plain() }),
        ("lockdown_mode", TraceConfig { lockdown_mode: Some(LockdownModeOperation::LOCKDOWN_CLEAR), ..plain() }),
        ("lockdown_mode, unknown", TraceConfig { lockdown_mode: Some(LockdownModeOperation(77)), ..plain() }),
        (
            "producers",
            TraceConfig {
                producers: vec![ProducerConfig {
                    producer_name: Some("p".into()),
                    shm_size_kb: Some(64),
                    page_size_kb: Some(8),
                    ..Default::default()
                }],
                ..plain()
            },
        ),
        (
            "statsd_metadata",
            TraceConfig {
                statsd_metadata: Some(StatsdMetadata { triggering_config_id: Some(5), ..Default::default() }),
                ..plain()
            },
        ),
        ("file_write_period_ms", TraceConfig { file_write_period_ms: Some(1), ..streamed() }),
        ("max_file_size_bytes", TraceConfig { max_file_size_bytes: Some(1 << 40), ..streamed() }),
        ("write_flush_mode", TraceConfig { write_flush_mode: Some(WriteFlushMode::WRITE_FLUSH_ENABLED), ..streamed() }),
        ("write_flush_mode, unknown", TraceConfig { write_flush_mode: Some(WriteFlushMode(77)), ..streamed() }),
        ("fflush_post_write", TraceConfig { fflush_post_write: Some(FFlushMode::FFLUSH_ENABLED), ..streamed() }),
        ("output_path without write_into_file", TraceConfig { output_path: Some("/x".into()), ..plain() }),
        (
            "guardrail_overrides",
            TraceConfig {
                guardrail_overrides: Some(GuardrailOverrides {
                    max_upload_per_day_bytes: Some(1),
                    max_tracing_buffer_size_kb: Some(2),
                    ..Default::default()
                }),
                ..plain()
            },
        ),
        ("deferred_start", TraceConfig { deferred_start: Some(true), ..plain() }),
        ("flush_period_ms", TraceConfig { flush_period_ms: Some(50), ..plain() }),
        ("flush_timeout_ms", TraceConfig { flush_timeout_ms: Some(50), ..plain() }),
        ("notify_traceur", TraceConfig { notify_traceur: Some(true), ..plain() }),
        (
            "trigger_config",
            TraceConfig {
                trigger_config: Some(TriggerConfig {
                    trigger_mode: Some(trigger_config::TriggerMode::UNSPECIFIED),
                    triggers: vec![trigger],
                    trigger_timeout_ms: Some(9),
                    ..Default::default()
                }),
                ..plain()
            },
        ),
        ("activate_triggers", TraceConfig { activate_triggers: vec!["a".into()], ..plain() }),
        ("allow_user_build_tracing", TraceConfig { allow_user_build_tracing: Some(true), ..plain() }),
        (
            "incremental_state_config",
            TraceConfig {
                incremental_state_config: Some(IncrementalStateConfig {
                    clear_period_ms: Some(7),
                    ..Default::default()
                }),
                ..plain()
            },
        ),
        ("unique_session_name", TraceConfig { unique_session_name: Some("n".into()), ..plain() }),
        ("data_source_stop_timeout_ms", TraceConfig { data_source_stop_timeout_ms: Some(8), ..plain() }),
        ("compression_type, unknown", TraceConfig { compression_type: Some(CompressionType(77)), ..plain() }),
        (
            "incident_report_config",
            TraceConfig {
                incident_report_config: Some(IncidentReportConfig { skip_incidentd: Some(true), ..Default::default() }),
                ..plain()
            },
        ),
        ("trace_uuid", TraceConfig { trace_uuid_msb: Some(-1), trace_uuid_lsb: Some(2), ..plain() }),
        ("bugreport_score", TraceConfig { bugreport_score: Some(-5), ..plain() }),
        ("bugreport_filename", TraceConfig { bugreport_filename: Some("a.pftrace".into()), ..plain() }),
        ("statsd_logging", TraceConfig { statsd_logging: Some(StatsdLogging(1)), ..plain() }),
        (
            "android_report_config",
            TraceConfig {
                android_report_config: Some(AndroidReportConfig { skip_report: Some(true), ..Default::default() }),
                ..plain()
            },
        ),
        (
            "cmd_trace_start_delay",
            TraceConfig {
                cmd_trace_start_delay: Some(CmdTraceStartDelay { max_delay_ms: Some(1), ..Default::default() }),
                ..plain()
            },
        ),
        ("prefer_suspend_clock_for_duration", TraceConfig { prefer_suspend_clock_for_duration: Some(true), ..plain() }),
        (
            "session_semaphores",
            TraceConfig {
                session_semaphores: vec![SessionSemaphore { name: Some("s".into()), ..Default::default() }],
                ..plain()
            },
        ),
        (
            "priority_boost",
            TraceConfig {
                priority_boost: Some(PriorityBoostConfig {
                    policy: Some(esatto_schema::priority_boost_config::BoostPolicy::POLICY_SCHED_OTHER),
                    priority: Some(2),
                    ..Default::default()
                }),
                ..plain()
            },
        ),
        ("exclusive_prio", TraceConfig { exclusive_prio: Some(4), ..plain() }),
        ("trace_all_machines", TraceConfig { trace_all_machines: Some(true), ..plain() }),
        (
            "trace_attributes",
            TraceConfig {
                trace_attributes: Some(TraceAttributes { attribute: vec![attribute], ..Default::default() }),
                ..plain()
            },
        ),
        ("unknown fields", TraceConfig { unknown_fields: vec![0xc2, 0xbb, 0x01, 2, b'h', b'i'], ..plain() }),
    ];
    let none = BuiltinDataSource::default;
    let switches = [
        ("disable_clock_snapshotting", BuiltinDataSource { disable_clock_snapshotting: Some(true), ..none() }),
        ("disable_system_info", BuiltinDataSource { disable_system_info: Some(true), ..none() }),
        ("disable_service_events", BuiltinDataSource { disable_service_events: Some(true), ..none() }),
        ("primary_trace_clock", BuiltinDataSource { primary_trace_clock: Some(BuiltinClock(3)), ..none() }),
        ("snapshot_interval_ms", BuiltinDataSource { snapshot_interval_ms: Some(10), ..none() }),
        (
            "prefer_suspend_clock_for_snapshot",
            BuiltinDataSource { prefer_suspend_clock_for_snapshot: Some(true), ..none() },
        ),
        ("disable_chunk_usage_histograms", BuiltinDataSource { disable_chunk_usage_histograms: Some(true), ..none() }),
        ("disable_extension_descriptors", BuiltinDataSource { disable_extension_descriptors: Some(true), ..none() }),
        (
            "enable_concurrent_session_events",
            BuiltinDataSource { enable_concurrent_session_events: Some(true), ..none() },
        ),
    ];
    rows.extend(switches.map(|(name, switch)| (name, builtin(switch))));
    rows
}

#[test]
fn every_config_field_is_echoed_unchanged() {
    for (name, config) in rows() {
        let mut world = World::new();
        let producer = world.producer("p");
        world.register(&producer, "ds");
        let consumer = world.consumer();
        let streams = config.write_into_file == Some(true);
        let call = world.enable_with(consumer, &config, streams);
        assert_eq!(world.ended(call), None, "{name} is accepted");
        let mut trace = world.read(consumer);
        if streams {
            world.consumer_call(consumer, esatto_ports::consumer_port::method::DisableTracing::METHOD, &[]);
            let file = TraceReader::parse(&world.files[&FileId(1)]).unwrap();
            trace = file.packet().map(|packet| packet.as_bytes().to_vec()).collect();
        }
        if config.trigger_config.is_some() {
            assert!(trace.is_empty(), "it waits for a trigger");
            continue;
        }
        let echo = trace.iter().find_map(|packet| TracePacketReader::new(packet).trace_config());
        assert_eq!(echo.map(|echo| echo.as_bytes().to_vec()), Some(config.encode()), "{name}");
    }
}

/// Numbers of the fields that producers read: the service forwards them as they are.
fn of_producers() -> impl Iterator<Item = u32> {
    [10..=10, 12..=12, 100..=121, 123..=144, 150..=150, 1001..=1001, 5000..=5000].into_iter().flatten()
}

#[test]
fn every_field_of_a_data_source_reaches_its_producer_as_it_came() {
    for number in of_producers() {
        // A field that no version knows.
        let mut content = HeapBuffer::new();
        content.message().bytes(4321, b"hi");
        let mut raw = HeapBuffer::new();
        raw.message().bytes(number, &content.to_vec());
        let raw = raw.to_vec();

        let mut world = World::new();
        let producer = world.producer("p");
        world.register(&producer, "ds");
        let consumer = world.consumer();
        let mut config = config(&["ds"]);
        config.data_sources[0].config.as_mut().unwrap().unknown_fields = raw.clone();
        let call = world.enable(consumer, &config);
        assert_eq!(world.ended(call), None, "field {number}");
        let holds_it = |body: &[u8]| body.windows(raw.len()).any(|window| window == raw);
        let commands = &world.replies[&producer.commands];
        let told = commands.iter().filter(|reply| holds_it(reply.body.as_bytes())).count();
        assert_eq!(told, 2, "field {number}: once for the setup and once for the start");
    }
}

#[test]
fn the_service_overwrites_its_own_fields_of_a_config() {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let claimed = DataSourceConfig {
        name: Some("ds".into()),
        target_buffer: Some(1),
        trace_duration_ms: Some(99),
        tracing_session_id: Some(99),
        enable_extra_guardrails: Some(true),
        stop_timeout_ms: Some(99),
        session_initiator: Some(esatto_schema::data_source_config::SessionInitiator(1)),
        prefer_suspend_clock_for_duration: Some(false),
        buffer_exhausted_policy: Some(esatto_schema::data_source_config::BufferExhaustedPolicy(2)),
        legacy_config: Some("text".into()),
        ..Default::default()
    };
    let mut source = source("ds");
    source.config = Some(Box::new(claimed));
    let config = TraceConfig {
        buffers: vec![buffer(4), buffer(4)],
        data_sources: vec![source],
        duration_ms: Some(1000),
        data_source_stop_timeout_ms: Some(70),
        prefer_suspend_clock_for_duration: Some(true),
        ..Default::default()
    };
    world.enable(consumer, &config);
    let setup = world.commands(&producer).remove(1).setup_data_source.unwrap().config.unwrap();
    assert_eq!((setup.target_buffer, setup.trace_duration_ms), (Some(2), Some(1000)), "the buffer's global number");
    assert_eq!((setup.tracing_session_id, setup.enable_extra_guardrails), (Some(1), Some(false)));
    assert_eq!((setup.stop_timeout_ms, setup.session_initiator.unwrap().0), (Some(70), 0));
    assert_eq!(setup.prefer_suspend_clock_for_duration, Some(true));
    assert_eq!((setup.buffer_exhausted_policy.unwrap().0, setup.legacy_config), (2, Some("text".into())));
}

#[test]
fn data_sources_get_the_extra_guardrails() {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &TraceConfig { enable_extra_guardrails: Some(true), ..config(&["ds"]) });
    let setup = world.commands(&producer).remove(1).setup_data_source.unwrap().config.unwrap();
    assert_eq!(setup.enable_extra_guardrails, Some(true));
}

#[test]
fn clocks_that_count_suspend_are_used_if_the_config_says_so() {
    let deadlines = |config: &TraceConfig| {
        let mut world = World::new();
        let consumer = world.consumer();
        world.enable(consumer, config);
        world.deadlines()
    };
    let lasting = TraceConfig { duration_ms: Some(1234), ..config(&[]) };
    let at = World::new().now;
    let duration = (TimerClock::Monotonic, at.monotonic_ns + 1_234_000_000);
    assert!(deadlines(&lasting).contains(&duration));
    let suspended = TraceConfig { prefer_suspend_clock_for_duration: Some(true), ..lasting };
    assert!(deadlines(&suspended).contains(&(TimerClock::Boottime, at.boottime_ns + 1_234_000_000)));

    let snapshots = |prefer_suspend_clock_for_snapshot| TraceConfig {
        builtin_data_sources: Some(BuiltinDataSource {
            snapshot_interval_ms: Some(777),
            prefer_suspend_clock_for_snapshot,
            ..Default::default()
        }),
        ..config(&[])
    };
    // Periods are counted from the beginning of the clock.
    let next = |now_ns: u64| (now_ns / 777_000_000 + 1) * 777_000_000;
    assert!(deadlines(&snapshots(None)).contains(&(TimerClock::Monotonic, next(at.monotonic_ns))));
    assert!(deadlines(&snapshots(Some(true))).contains(&(TimerClock::Boottime, next(at.boottime_ns))));
}

#[test]
fn each_snapshot_names_the_primary_clock() {
    for (wanted, told) in [(None, 6), (Some(BuiltinClock(0)), 6), (Some(BuiltinClock(3)), 3)] {
        let mut world = World::new();
        let consumer = world.consumer();
        let builtin = BuiltinDataSource { primary_trace_clock: wanted, ..Default::default() };
        world.enable(consumer, &TraceConfig { builtin_data_sources: Some(builtin), ..config(&[]) });
        let packets = world.read(consumer);
        let clocks: Vec<i32> = packets
            .iter()
            .filter_map(|packet| TracePacketReader::new(packet).clock_snapshot()?.primary_trace_clock())
            .map(|clock| clock.0)
            .collect();
        assert!(!clocks.is_empty() && clocks.iter().all(|&clock| clock == told), "{clocks:?}");
    }
}
