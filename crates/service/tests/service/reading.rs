//! The packets that a read returns, and their order.

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use esatto_protozero::{Fields, Owned};
use esatto_schema::{
    FlushRequest, GetTraceStatsResponse, PACKETS_AFTER_LOSS_FIELD, TraceConfig, TracePacketReader, TraceStatsReader,
    WRITERS_LEFT_OUT_FIELD, trace_config,
};
use esatto_service::Input;

use crate::world::{SERVICE_UID, World, buffer, config, packet, source};

/// Returns the kind of each packet, by its payload.
fn kinds(packets: &[Vec<u8>]) -> Vec<&'static str> {
    let kind = |packet: &Vec<u8>| {
        let packet = TracePacketReader::parse(packet).unwrap();
        if packet.trusted_packet_sequence_id() != Some(1) {
            return "data";
        }
        assert_eq!(packet.trusted_uid(), Some(SERVICE_UID));
        if let Some(event) = packet.service_event() {
            return match () {
                () if event.tracing_started().is_some() => "tracing_started",
                () if event.all_data_sources_started().is_some() => "all_data_sources_started",
                () if event.all_data_sources_flushed().is_some() => "all_data_sources_flushed",
                () if event.flush_started().is_some() => "flush_started",
                () if event.tracing_disabled().is_some() => "tracing_disabled",
                () if event.read_tracing_buffers_completed().is_some() => "read_tracing_buffers_completed",
                () if event.slow_starting_data_sources().is_some() => "slow_starting_data_sources",
                () if event.last_flush_slow_data_sources().is_some() => "last_flush_slow_data_sources",
                () => "another event",
            };
        }
        match () {
            () if packet.clock_snapshot().is_some() => "clocks",
            () if packet.synchronization_marker().is_some() => "sync",
            () if packet.trace_config().is_some() => "config",
            () if packet.trace_uuid().is_some() => "uuid",
            () if packet.trace_provenance().is_some() => "provenance",
            () if packet.system_info().is_some() => "system",
            () if packet.trace_stats().is_some() => "stats",
            () => "something else",
        }
    };
    packets.iter().map(kind).collect()
}

#[test]
fn packets_come_in_their_order() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    world.commit(&mut producer, 1, 1, 0, &[&packet("a")]);
    assert_eq!(
        kinds(&world.read(consumer)),
        [
            "clocks",
            "clocks",
            "sync",
            "config",
            "uuid",
            "provenance",
            "system",
            "tracing_started",
            "all_data_sources_started",
            "data",
            "read_tracing_buffers_completed",
            "stats"
        ]
    );
    assert_eq!(kinds(&world.read(consumer)), ["read_tracing_buffers_completed"]);
    world.advance_ms(10_000);
    assert_eq!(kinds(&world.read(consumer)), ["clocks", "sync", "read_tracing_buffers_completed", "stats"]);
}

#[test]
fn a_read_before_the_start_uses_up_the_first_packets() {
    let mut world = World::new();
    let consumer = world.consumer();
    world.enable(consumer, &TraceConfig { deferred_start: Some(true), ..config(&[]) });
    let first = ["config", "uuid", "provenance", "system", "read_tracing_buffers_completed"];
    assert_eq!(kinds(&world.read(consumer)), first);
    world.consumer_call(consumer, method::StartTracing::METHOD, &[]);
    assert_eq!(
        kinds(&world.read(consumer))[..5],
        ["clocks", "clocks", "sync", "tracing_started", "all_data_sources_started"]
    );
}

#[test]
fn builtin_packets_can_be_switched_off() {
    let mut world = World::new();
    let consumer = world.consumer();
    let builtin = trace_config::BuiltinDataSource {
        disable_clock_snapshotting: Some(true),
        disable_trace_config: Some(true),
        disable_system_info: Some(true),
        disable_service_events: Some(true),
        disable_chunk_usage_histograms: Some(true),
        ..Default::default()
    };
    world.enable(consumer, &TraceConfig { builtin_data_sources: Some(builtin), ..config(&[]) });
    let packets = world.read(consumer);
    assert_eq!(kinds(&packets), ["sync", "uuid", "provenance", "stats"]);
    let stats = TracePacketReader::new(&packets[3]);
    assert_eq!(stats.trace_stats().unwrap().chunk_payload_histogram_def().count(), 0);
}

#[test]
fn the_sync_marker_is_the_last_field_of_its_packet() {
    let mut world = World::new();
    let consumer = world.consumer();
    world.enable(consumer, &config(&[]));
    let packets = world.read(consumer);
    let marker = packets.iter().find(|packet| kinds(&[(*packet).clone()]) == ["sync"]).unwrap();
    let tail = [0x82, 0x47, 0x7a, 0x76, 0xb2, 0x8d, 0x42, 0xba, 0x81, 0xdc, 0x33, 0x32, 0x6d, 0x57, 0xa0, 0x79];
    assert!(marker.ends_with(&tail));
    assert_eq!(marker.len(), 2 + 2 + 3 + 16);
}

#[test]
fn the_config_is_echoed_with_its_unknown_fields() {
    let mut world = World::new();
    let consumer = world.consumer();
    let unknown = vec![0xc2, 0xb8, 0x02, 2, b'h', b'i'];
    let config = TraceConfig { unknown_fields: unknown.clone(), ..config(&["ds"]) };
    world.enable(consumer, &config);
    let packets = world.read(consumer);
    let echo = packets.iter().find_map(|packet| TracePacketReader::new(packet).trace_config()).unwrap();
    assert_eq!(echo.as_bytes(), config.encode());
    assert!(echo.as_bytes().windows(unknown.len()).any(|window| window == unknown));
}

#[test]
fn the_uuid_of_the_config_is_used() {
    let mut world = World::new();
    let consumer = world.consumer();
    world.enable(consumer, &TraceConfig { trace_uuid_msb: Some(-5), trace_uuid_lsb: Some(7), ..config(&[]) });
    let packets = world.read(consumer);
    let uuid = packets.iter().find_map(|packet| TracePacketReader::new(packet).trace_uuid()).unwrap();
    assert_eq!((uuid.msb(), uuid.lsb()), (Some(-5), Some(7)));
}

#[test]
fn packets_are_stamped_and_their_writers_named() {
    let mut world = World::new();
    let mut first = world.producer("first");
    let mut second = world.producer("second");
    world.register(&first, "ds");
    world.register(&second, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    world.commit(&mut second, 1, 9, 0, &[&packet("b")]);
    world.commit(&mut first, 1, 3, 0, &[&packet("a")]);
    let packets = world.read(consumer);
    let provenance = packets.iter().find_map(|packet| TracePacketReader::new(packet).trace_provenance()).unwrap();
    let sequences: Vec<_> = provenance.buffers().next().unwrap().sequences().collect();
    let named: Vec<_> = sequences.iter().map(|named| (named.id().unwrap(), named.producer_id().unwrap())).collect();
    assert_eq!(named, [(2, 1), (3, 2)], "in the order of producers, not of commits");
    let data =
        packets.iter().map(|packet| TracePacketReader::new(packet)).filter(|packet| packet.for_testing().is_some());
    let stamped: Vec<_> =
        data.map(|packet| (packet.trusted_packet_sequence_id(), packet.trusted_uid(), packet.trusted_pid())).collect();
    assert_eq!(stamped, [(Some(2), Some(1000), Some(42)), (Some(3), Some(1000), Some(42))]);
}

#[test]
fn packets_with_reserved_fields_are_dropped_and_counted() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    world.commit(&mut producer, 1, 1, 0, &[&[0x18, 0], &packet("good"), &[0x0a, 9]]);
    assert_eq!(world.read_texts(consumer), ["good"]);
    let call = world.consumer_call(consumer, method::GetTraceStats::METHOD, &[]);
    let stats = GetTraceStatsResponse::decode(world.replies[&call][0].body.as_bytes()).unwrap().trace_stats.unwrap();
    assert_eq!(stats.invalid_packets, Some(2));
    assert_eq!(stats.buffer_stats[0].chunks_written, Some(1));
    assert_eq!(stats.writer_stats[0].sequence_id, Some(2));
    assert_eq!(stats.chunk_payload_histogram_def.len(), 10);
}

#[test]
fn statistics_of_very_many_writers_fit_into_a_reply() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let config = TraceConfig { buffers: vec![buffer(4096)], data_sources: vec![source("ds")], ..Default::default() };
    world.enable(consumer, &config);
    for (first, last, told) in [(1, 100, 100..=100), (101, 8000, 2000..=7999)] {
        for writer in first..=last {
            world.commit(&mut producer, 1, writer, 0, &[&packet("x")]);
        }
        let before = world.service.work();
        let call = world.consumer_call(consumer, method::GetTraceStats::METHOD, &[]);
        let reply = world.replies[&call][0].body.as_bytes();
        assert!(reply.len() <= 131_072 - 64);
        let stats = GetTraceStatsResponse::decode(reply).unwrap().trace_stats.unwrap();
        let told_now = stats.writer_stats.len();
        assert!(told.contains(&told_now), "{told_now}");
        let left_out = Fields::new(&stats.unknown_fields).find(|field| field.id == WRITERS_LEFT_OUT_FIELD);
        assert_eq!(left_out.map_or(0, |field| field.as_u64()), u64::from(last) - told_now as u64);
        assert!(world.service.work() - before < 15_000, "work is bounded by the frame");
        assert!(stats.buffer_stats[0].chunks_written >= Some(100));
    }
}

#[test]
fn long_reads_come_in_batches_that_hold_everything_once() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let config = TraceConfig { buffers: vec![buffer(4096)], data_sources: vec![source("ds")], ..Default::default() };
    world.enable(consumer, &config);
    let long = "x".repeat(3000);
    for id in 0..300 {
        world.commit(&mut producer, 1, 1, id, &[&packet(&format!("{id}{long}"))]);
    }
    let call = world.consumer_call(consumer, method::ReadBuffers::METHOD, &[]);
    assert!(world.replies[&call].len() > 12, "about 64 KiB at a time");
    world.replies.clear();
    for id in 300..600 {
        world.commit(&mut producer, 1, 1, id, &[&packet(&format!("{id}{long}"))]);
    }
    let texts = world.read_texts(consumer);
    assert_eq!(texts.len(), 300);
    assert!(texts.iter().zip(300..).all(|(text, id)| text == &format!("{id}{long}")));
}

#[test]
fn each_buffer_holds_its_own_data_sources() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "a");
    world.register(&producer, "b");
    let consumer = world.consumer();
    let mut second = source("b");
    second.config.as_mut().unwrap().target_buffer_name = Some("two".into());
    let two = trace_config::BufferConfig { name: Some("two".into()), ..buffer(8) };
    let config = TraceConfig {
        buffers: vec![buffer(4), two],
        data_sources: vec![source("a"), second],
        ..TraceConfig::default()
    };
    world.enable(consumer, &config);
    let commands = world.commands(&producer);
    let targets: Vec<_> = commands
        .iter()
        .filter_map(|command| command.setup_data_source.as_ref()?.config.as_ref()?.target_buffer)
        .collect();
    assert_eq!(targets, [1, 2]);
    world.commit(&mut producer, 2, 1, 0, &[&packet("second")]);
    world.commit(&mut producer, 1, 2, 0, &[&packet("first")]);
    assert_eq!(world.read_texts(consumer), ["first", "second"], "in the order of the config");
}

#[test]
fn a_discard_buffer_keeps_the_oldest_and_a_ring_the_newest() {
    for (fill_policy, first, lost) in [(2, "0", ""), (1, "57", "=65")] {
        let mut world = World::new();
        let mut producer = world.producer("p");
        world.register(&producer, "ds");
        let consumer = world.consumer();
        let fill_policy = Some(trace_config::buffer_config::FillPolicy(fill_policy));
        let buffer = trace_config::BufferConfig { fill_policy, ..buffer(4) };
        let config = TraceConfig { buffers: vec![buffer], data_sources: vec![source("ds")], ..TraceConfig::default() };
        world.enable(consumer, &config);
        for id in 0..64 {
            world.commit(&mut producer, 1, 1, id, &[&packet(&format!("{id}{}", " ".repeat(500)))]);
        }
        let texts = world.read_texts(consumer);
        assert_eq!(texts[0].replace(' ', ""), format!("{first}{lost}"));
        assert_eq!(texts.len(), 7);
    }
}

#[test]
fn a_loss_mark_survives_on_the_first_packet_of_a_writer_that_does_not_name_it() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    let old = &packet("old")[3..];
    world.commit(&mut producer, 1, 1, 0, &[old, old]);
    world.commit(&mut producer, 1, 2, 0, &[&packet("new")]);
    assert_eq!(world.read_texts(consumer), ["old=1", "old", "new"]);
    world.commit(&mut producer, 1, 1, 1, &[old]);
    assert_eq!(world.read_texts(consumer), ["old"]);
}

#[test]
fn slow_starters_and_slow_flushers_are_named() {
    let mut world = World::new();
    let producer = world.producer("lazy");
    let descriptor = esatto_schema::DataSourceDescriptor {
        name: Some("ds".into()),
        will_notify_on_start: Some(true),
        ..Default::default()
    };
    world.register_as(&producer, descriptor);
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    world.advance_ms(20_000);
    let stop = FlushRequest { timeout_ms: Some(10), flags: Some(0x22), ..Default::default() }.encode();
    world.consumer_call(consumer, method::Flush::METHOD, &stop);
    world.advance_ms(10);
    let packets = world.read(consumer);
    let kinds = kinds(&packets);
    for expected in ["slow_starting_data_sources", "flush_started", "last_flush_slow_data_sources"] {
        assert!(kinds.contains(&expected), "{kinds:?}");
    }
    let slow = packets
        .iter()
        .find_map(|packet| TracePacketReader::new(packet).service_event()?.last_flush_slow_data_sources());
    let line = r#"session 1: flush 1 was not acknowledged in time by producer "lazy" (uid 1000, pid 42): "ds""#;
    assert_eq!(world.warnings, [line]);
    let slow = slow.unwrap().data_source().next().unwrap();
    assert_eq!((slow.producer_name(), slow.data_source_name()), (Some(&b"lazy"[..]), Some(&b"ds"[..])));
}

#[test]
fn the_outcome_of_the_final_flush_is_in_the_stats() {
    for (answers, outcome) in [(true, 1), (false, 2)] {
        let mut world = World::new();
        let producer = world.producer("p");
        world.register(&producer, "ds");
        let consumer = world.consumer();
        world.enable(consumer, &TraceConfig { duration_ms: Some(100), ..config(&["ds"]) });
        world.advance_ms(100);
        if answers {
            world.acknowledge_flush(&producer, 1);
        }
        world.advance_ms(5_000);
        let packets = world.read(consumer);
        let stats: Vec<TraceStatsReader<'_>> =
            packets.iter().filter_map(|packet| TracePacketReader::new(packet).trace_stats()).collect();
        assert_eq!(stats[0].final_flush_outcome().unwrap().0, outcome);
    }
}

#[test]
fn a_read_ends_when_its_session_is_freed() {
    // The owner never says that the client is ready for more.
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let config = TraceConfig { buffers: vec![buffer(256)], ..config(&["ds"]) };
    world.enable(consumer, &config);
    for id in 0..40 {
        world.commit(&mut producer, 1, 1, id, &[&packet(&"x".repeat(4000))]);
    }
    world.is_slow = true;
    let call = world.consumer_call(consumer, method::ReadBuffers::METHOD, &[]);
    assert!(world.replies[&call].back().unwrap().has_more);
    world.consumer_call(consumer, method::FreeBuffers::METHOD, &[]);
    assert!(!world.replies[&call].back().unwrap().has_more);
    world.feed(Input::Ready(consumer));
}

#[test]
fn packets_after_a_loss_are_counted() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    let mut count_after = |chunks: &[u32]| {
        for &id in chunks {
            world.commit(&mut producer, 1, 1, id, &[&packet("a")]);
        }
        world.read(consumer);
        let call = world.consumer_call(consumer, method::GetTraceStats::METHOD, &[]);
        let reply = GetTraceStatsResponse::decode(world.replies[&call][0].body.as_bytes()).unwrap();
        let stats = reply.trace_stats.expect("statistics");
        let mut fields = Fields::new(&stats.buffer_stats[0].unknown_fields);
        fields.find(|field| field.id == PACKETS_AFTER_LOSS_FIELD).map(|field| field.as_u64())
    };
    assert_eq!(count_after(&[0, 1]), None);
    // The service never gets the chunk between them.
    assert_eq!(count_after(&[3]), Some(1));
    assert_eq!(count_after(&[4]), Some(1));
}
