//! The line that the log has at the end of a session, and the metrics, are true: they tell losses
//! apart from what a ring buffer overwrites, and what became of the file.

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use esatto_protozero::Owned;
use esatto_schema::commit_data_request::ChunksToMove;
use esatto_schema::trace_config::{BufferConfig, TriggerConfig, trigger_config};
use esatto_schema::{CloneSessionRequest, CommitDataRequest, TraceConfig};
use esatto_service::{ChunkHeader, ClientId, Input, Recorded};

use crate::world::{FakeProducer, World, buffer, chunk_payload, config, packet};

/// `previous_packet_dropped` = 257, as the first field.
const SHARED_MEMORY_WAS_FULL: [u8; 4] = [0xd0, 0x02, 0x81, 0x02];
/// The same before v57.
const SOMETHING_WAS_LOST: [u8; 3] = [0xd0, 0x02, 0x01];
/// `previous_packet_dropped` = 129: the writer gave up a packet.
const GIVEN_UP: [u8; 4] = [0xd0, 0x02, 0x81, 0x01];
const DROP_MARKER: [u8; 4] = [0xff, 0xff, 0xff, 0x7f];

fn begin(config: &TraceConfig, has_file: bool) -> (World, FakeProducer, ClientId) {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    world.enable_with(consumer, config, has_file);
    (world, producer, consumer)
}

/// Returns the words after "ended after …: " of the only session that has ended.
fn end(world: &World) -> String {
    let ends: Vec<&str> =
        world.log.iter().filter_map(|line| line.split_once(" ended after ")).map(|(_, end)| end).collect();
    assert_eq!(ends.len(), 1, "{:?}", world.log);
    ends[0].split_once(": ").unwrap().1.to_owned()
}

fn recorded(world: &World) -> Recorded {
    world.service.metrics().recorded
}

fn marked(mark: &[u8], text: &str) -> Vec<u8> {
    [mark, &packet(text)].concat()
}

/// Commits a chunk whose second packet is broken off.
fn commit_broken_off(world: &mut World, producer: &mut FakeProducer, chunk_id: u32) {
    let payload = [chunk_payload(&[&packet("whole")]), DROP_MARKER.to_vec()].concat();
    let page = producer.next_page;
    producer.next_page += 1;
    let header = ChunkHeader { writer_id: 1, chunk_id, count: 2, flags: 0 };
    world.memories[&producer.client].put(page, header, true, &payload);
    let chunk = ChunksToMove { page: Some(page), chunk: Some(0), target_buffer: Some(1), ..Default::default() };
    world.commit_request(producer, &CommitDataRequest { chunks_to_move: vec![chunk], ..Default::default() });
}

#[test]
fn each_gap_in_shared_memory_counts_once() {
    let (mut world, mut producer, consumer) = begin(&config(&["ds"]), false);
    let gaps = |world: &World| recorded(world).shared_memory_losses;
    world.commit(&mut producer, 1, 1, 0, &[&packet("a")]);
    assert_eq!(gaps(&world), 0);
    world.commit(&mut producer, 1, 1, 1, &[&marked(&SHARED_MEMORY_WAS_FULL, "between two packets")]);
    assert_eq!(gaps(&world), 1);
    commit_broken_off(&mut world, &mut producer, 2);
    assert_eq!(gaps(&world), 2);
    world.commit(&mut producer, 1, 1, 3, &[&marked(&SHARED_MEMORY_WAS_FULL, "within a packet")]);
    assert_eq!(gaps(&world), 2, "the same gap");
    world.commit(&mut producer, 1, 1, 4, &[&marked(&SOMETHING_WAS_LOST, "by an old writer")]);
    assert_eq!(gaps(&world), 3);
    world.commit(&mut producer, 1, 1, 5, &[&marked(&GIVEN_UP, "by its program")]);
    assert_eq!(gaps(&world), 3);
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    assert!(end(&world).ends_with(" bytes recorded, lost: 3 gaps where producers dropped packets"), "{}", end(&world));
    world.consumer_call(consumer, method::FreeBuffers::METHOD, &[]);
    assert_eq!(gaps(&world), 3);
}

/// Fills a ring of 4 KiB several times.
fn overflow(world: &mut World, producer: &mut FakeProducer, ids: core::ops::Range<u32>) {
    for id in ids {
        world.commit(producer, 1, 1, id, &[&packet(&"x".repeat(1000))]);
    }
}

#[test]
fn a_ring_that_is_read_at_its_end_loses_nothing() {
    let ring = TraceConfig { buffers: vec![buffer(4)], ..config(&["ds"]) };
    let (mut world, mut producer, consumer) = begin(&ring, false);
    overflow(&mut world, &mut producer, 0..8);
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    let overwritten = recorded(&world).overwritten_bytes;
    let expected = format!("{overwritten} bytes overwritten as a ring buffer does, the service lost nothing");
    assert!(overwritten > 0 && end(&world).ends_with(&expected), "{}", end(&world));
    world.read(consumer);
    assert_eq!(recorded(&world).overwritten_lost_bytes, 0);
}

#[test]
fn a_ring_that_is_read_while_it_records_loses_what_it_overwrites() {
    let ring = TraceConfig { buffers: vec![buffer(4)], ..config(&["ds"]) };
    let file = TraceConfig { write_into_file: Some(true), ..ring.clone() };
    for (config, has_file) in [(ring, false), (file, true)] {
        let (mut world, mut producer, consumer) = begin(&config, has_file);
        world.read(consumer);
        overflow(&mut world, &mut producer, 0..8);
        world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
        let Recorded { overwritten_bytes, overwritten_lost_bytes, .. } = recorded(&world);
        assert!(overwritten_bytes > 0 && overwritten_lost_bytes == overwritten_bytes);
        let expected = format!(" bytes recorded, lost: {overwritten_bytes} bytes overwritten unread");
        assert!(end(&world).ends_with(&expected), "{}", end(&world));
        world.consumer_call(consumer, method::FreeBuffers::METHOD, &[]);
        assert_eq!(recorded(&world).overwritten_lost_bytes, overwritten_bytes);
    }
}

#[test]
fn content_that_a_clone_takes_is_still_counted() {
    let moved = BufferConfig { transfer_on_clone: Some(true), ..buffer(64) };
    let cleared = BufferConfig { clear_before_clone: Some(true), ..buffer(64) };
    for buffer in [moved, cleared] {
        let config = TraceConfig { buffers: vec![buffer], ..config(&["ds"]) };
        let (mut world, mut producer, consumer) = begin(&config, false);
        world.commit(&mut producer, 1, 1, 0, &[&marked(&SHARED_MEMORY_WAS_FULL, "a")]);
        let before = recorded(&world);
        assert!(before.bytes > 0);
        let cloner = world.consumer();
        let request = CloneSessionRequest { session_id: Some(1), ..Default::default() };
        world.consumer_call(cloner, method::CloneSession::METHOD, &request.encode());
        world.acknowledge_flush(&producer, u64::MAX);
        assert_eq!(recorded(&world), before);
        world.consumer_call(cloner, method::FreeBuffers::METHOD, &[]);
        assert_eq!(recorded(&world), before);
        world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
        let lost = "lost: 1 gaps where producers dropped packets";
        assert_eq!(end(&world), format!("{} bytes recorded, {lost}", before.bytes));
        world.consumer_call(consumer, method::FreeBuffers::METHOD, &[]);
        assert_eq!(recorded(&world), before);
    }
}

#[test]
fn content_that_a_failed_clone_gives_back_counts_once() {
    let moved = BufferConfig { transfer_on_clone: Some(true), ..buffer(64) };
    let mut config = TraceConfig { buffers: vec![buffer(64), moved], ..config(&["ds"]) };
    config.data_sources[0].config.as_mut().unwrap().target_buffer = Some(0);
    let (mut world, mut producer, _) = begin(&config, false);
    world.register_writer(&producer, 1, 2);
    world.commit(&mut producer, 2, 1, 0, &[&packet("a")]);
    let before = recorded(&world);
    let cloner = world.consumer();
    let request = CloneSessionRequest { session_id: Some(1), ..Default::default() };
    world.consumer_call(cloner, method::CloneSession::METHOD, &request.encode());
    assert_eq!(recorded(&world), before);
    world.feed(Input::ConsumerDisconnected(cloner));
    assert_eq!(recorded(&world), before);
}

#[test]
fn a_session_without_its_trigger_is_discarded() {
    let trigger = trigger_config::Trigger { name: Some("stop".into()), ..Default::default() };
    let triggers = TriggerConfig {
        trigger_mode: Some(trigger_config::TriggerMode::STOP_TRACING),
        triggers: vec![trigger],
        trigger_timeout_ms: Some(10_000),
        ..Default::default()
    };
    let config = TraceConfig { trigger_config: Some(triggers), ..config(&["ds"]) };
    let (mut world, mut producer, consumer) = begin(&config, false);
    world.commit(&mut producer, 1, 1, 0, &[&packet("a")]);
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    assert!(end(&world).ends_with(" bytes recorded, discarded because no trigger came"), "{}", end(&world));
}

#[test]
fn a_full_file_lacks_the_end() {
    let file = TraceConfig { write_into_file: Some(true), max_file_size_bytes: Some(3000), ..config(&["ds"]) };
    let (mut world, mut producer, consumer) = begin(&file, true);
    overflow(&mut world, &mut producer, 0..8);
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    let expected = " bytes recorded, lost: the end of the trace, beyond max_file_size_bytes";
    assert!(end(&world).ends_with(expected), "{}", end(&world));
}

#[test]
fn the_end_is_told_when_the_file_is_written() {
    let file = TraceConfig { write_into_file: Some(true), ..config(&["ds"]) };
    for error in [None, Some("no space")] {
        let (mut world, mut producer, consumer) = begin(&file, true);
        world.commit(&mut producer, 1, 1, 0, &[&packet("a")]);
        world.advance_ms(50);
        world.writes_are_slow = true;
        world.file_error = error.map(str::to_owned);
        world.feed(Input::ConsumerDisconnected(consumer));
        world.advance_ms(1000);
        assert!(world.log.iter().all(|line| !line.contains("ended")), "{:?}", world.log);
        world.finish_slow_work();
        let expected = match error {
            None => "the service lost nothing",
            Some(_) => "lost: the end of the trace file; the end of the trace file cannot be written: no space",
        };
        assert!(end(&world).ends_with(expected), "{}", end(&world));
        assert!(world.log.iter().any(|line| line.contains("ended after 50ms: ")), "{:?}", world.log);
        assert_eq!(world.service.metrics().files_failed, u64::from(error.is_some()));
    }
}

#[test]
fn a_file_that_the_owner_gives_up_is_told() {
    let file = TraceConfig { write_into_file: Some(true), ..config(&["ds"]) };
    let (mut world, _, consumer) = begin(&file, true);
    world.writes_are_slow = true;
    world.feed(Input::ConsumerDisconnected(consumer));
    assert!(world.service.is_draining());
    world.feed(Input::FilesGivenUp);
    assert!(!world.service.is_draining());
    let why = "the trace file is incomplete: the service ended before all of it was written";
    assert!(end(&world).ends_with(&format!("lost: the end of the trace file; {why}")), "{}", end(&world));
    assert_eq!(world.closed_files.len(), 1);
}
