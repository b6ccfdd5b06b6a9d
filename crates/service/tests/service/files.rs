//! Sessions that are streamed into a file.

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use esatto_schema::commit_data_request::{ChunkToPatch, ChunksToMove, chunk_to_patch::Patch};
use esatto_schema::data_source_config::BufferExhaustedPolicy;
use esatto_schema::trace_config::{FFlushMode, WriteFlushMode};
use esatto_schema::{CommitDataRequest, TraceConfig, TracePacketReader, TraceReader};
use esatto_service::{CallId, ChunkHeader, ClientId, FileId, Input};

use crate::consumers::{attach, detach, wait_for_end};
use crate::world::{FakeProducer, SERVICE_UID, World, buffer, chunk_payload, config, packet, text_of};

fn streaming(sources: &[&str]) -> TraceConfig {
    TraceConfig { write_into_file: Some(true), file_write_period_ms: Some(1000), ..config(sources) }
}

fn texts(world: &World) -> Vec<String> {
    let bytes = &world.files[&FileId(1)];
    let trace = TraceReader::parse(bytes).expect("a file of whole packets");
    trace.packet().filter_map(|packet| text_of(packet.as_bytes())).collect()
}

#[test]
fn a_file_is_written_periodically_and_completed_at_the_end() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let end = world.enable_with(consumer, &streaming(&["ds"]), true);
    world.commit(&mut producer, 1, 1, 0, &[&packet("a")]);
    assert!(texts(&world).is_empty());
    world.advance_ms(1000);
    assert_eq!(texts(&world), ["a"]);
    world.commit(&mut producer, 1, 1, 1, &[&packet("b")]);
    assert!(world.read(consumer).is_empty(), "such a session is not read");
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    assert_eq!(texts(&world), ["a", "b"]);
    assert_eq!(world.ended(end).as_deref(), Some(""));
    assert_eq!((&world.synced_files[..], &world.closed_files[..]), (&[FileId(1)][..], &[FileId(1)][..]));
    let trace = TraceReader::new(&world.files[&FileId(1)]);
    let last = trace.packet().last().unwrap();
    assert!(last.trace_stats().is_some());
}

#[test]
fn a_session_whose_file_is_refused_ends_before_its_first_write() {
    let mut world = World::new();
    let consumer = world.consumer();
    let end = world.enable_with(consumer, &streaming(&["ds"]), true);
    assert_eq!(world.ended(end), None);
    world.feed(Input::FileWritten { file: FileId(1), result: Err("too many are open".into()) });
    assert_eq!(world.ended(end).as_deref(), Some("the trace file cannot be written: too many are open"));
    assert_eq!(world.files.get(&FileId(1)).map_or(0, Vec::len), 0, "nothing is given to the owner");
}

#[test]
fn commits_wait_for_a_file_that_gets_everything() {
    let mut world = World::new();
    world.service.keep_unwritten();
    world.writes_are_slow = true;
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let mut config = TraceConfig { buffers: vec![buffer(8)], ..streaming(&["ds"]) };
    let source = config.data_sources[0].config.as_mut().expect("a source");
    source.buffer_exhausted_policy = Some(BufferExhaustedPolicy::BUFFER_EXHAUSTED_STALL_THEN_DROP);
    world.enable_with(consumer, &config, true);
    let mut ids = 0..;
    let mut commit = |world: &mut World| {
        let id = ids.next().expect("endless");
        world.commit(&mut producer, 1, 1, id, &[&packet(&format!("{id:03000}"))]);
    };
    let mut waits = 0;
    for _ in 0..2000 {
        if world.service.must_wait() {
            waits += 1;
            world.finish_slow_work();
        }
        assert!(!world.service.must_wait());
        commit(&mut world);
    }
    assert!(waits > 5, "{waits}");
    world.writes_are_slow = false;
    world.finish_slow_work();
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    world.finish_slow_work();
    let numbers: Vec<usize> = texts(&world).iter().map(|text| text.parse().expect("a number")).collect();
    assert!(numbers.iter().copied().eq(0..2000), "{numbers:?}");
}

#[test]
fn a_scrape_leaves_out_what_threads_write_meanwhile() {
    let mut world = World::new();
    world.service.keep_unwritten();
    let producer = world.scraped_producer("p");
    world.register(&producer, "ds");
    world.register_writer(&producer, 1, 1);
    let consumer = world.consumer();
    let mut config = TraceConfig { buffers: vec![buffer(8)], ..streaming(&["ds"]) };
    let source = config.data_sources[0].config.as_mut().expect("a source");
    source.buffer_exhausted_policy = Some(BufferExhaustedPolicy::BUFFER_EXHAUSTED_STALL_THEN_DROP);
    world.enable_with(consumer, &config, true);
    let memory = world.memories[&producer.client].clone();
    let chunk = |id: u32| {
        let header = ChunkHeader { writer_id: 1, chunk_id: id, count: 1, flags: 0 };
        (id, header, chunk_payload(&[&packet(&format!("{id}"))]))
    };
    let (page, header, payload) = chunk(0);
    memory.put(page, header, true, &payload);
    // At each look a thread fills a page behind it, and then one before it.
    for id in [1, 3, 5, 7] {
        memory.write_during_scrape(chunk(id), chunk(id + 1));
    }
    world.consumer_call(consumer, method::Flush::METHOD, &[]);
    world.advance_ms(10_000);
    let pages: Vec<u32> = (0..memory.chunks() as u32).collect();
    assert!(pages.len() >= 5, "{pages:?}");
    let moves = pages.iter().map(|&page| ChunksToMove {
        page: Some(page),
        chunk: Some(0),
        target_buffer: Some(1),
        ..Default::default()
    });
    let request = CommitDataRequest { chunks_to_move: moves.collect(), ..Default::default() };
    world.commit_request(&producer, &request);
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    world.advance_ms(10_000);
    let expected: Vec<String> = pages.iter().map(u32::to_string).collect();
    assert_eq!(texts(&world), expected);
}

#[test]
fn a_file_is_made_from_a_path_or_a_descriptor_but_not_both() {
    let mut world = World::new();
    let consumer = world.consumer();
    let neither = world.enable(consumer, &streaming(&[]));
    assert!(world.ended(neither).unwrap().contains("output_path"));
    let with_path = TraceConfig { output_path: Some("/tmp/x".into()), ..streaming(&[]) };
    let both = world.enable_with(consumer, &with_path, true);
    assert!(world.ended(both).unwrap().contains("not both"));
    world.file_error = Some("it exists".to_owned());
    let refused = world.enable(consumer, &with_path);
    assert_eq!(world.ended(refused).as_deref(), Some("output_path /tmp/x: it exists"));
    world.file_error = None;
    let accepted = world.enable(consumer, &with_path);
    assert_eq!(world.ended(accepted), None);
}

#[test]
fn a_full_file_ends_the_session_below_its_limit() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let config = TraceConfig { max_file_size_bytes: Some(5000), ..streaming(&["ds"]) };
    let end = world.enable_with(consumer, &config, true);
    for id in 0..10 {
        world.commit(&mut producer, 1, 1, id, &[&packet(&"x".repeat(1000))]);
    }
    world.advance_ms(1000);
    assert_eq!(world.ended(end).as_deref(), Some(""));
    let len = world.files[&FileId(1)].len();
    assert!((3000..5000).contains(&len), "{len}");
    assert!(!texts(&world).is_empty());
    assert_eq!(world.closed_files, [FileId(1)]);
}

#[test]
fn a_write_error_ends_the_session_and_is_reported() {
    let with_path = TraceConfig { output_path: Some("/tmp/x".into()), ..streaming(&[]) };
    for (config, path) in [(streaming(&[]), ""), (with_path, " /tmp/x")] {
        let mut world = World::new();
        let consumer = world.consumer();
        let end = world.enable_with(consumer, &config, path.is_empty());
        world.file_error = Some("no space left".to_owned());
        world.advance_ms(1000);
        let expected = format!("the trace file{path} cannot be written: no space left");
        assert_eq!(world.ended(end).as_deref(), Some(&expected[..]));
        assert_eq!(world.warnings, [format!("session 1: {expected}")]);
        assert_eq!(world.closed_files, [FileId(1)]);
    }
}

#[test]
fn a_write_error_of_a_freed_session_is_logged() {
    let mut world = World::new();
    let consumer = world.consumer();
    world.enable_with(consumer, &streaming(&[]), true);
    world.file_error = Some("no space left".to_owned());
    world.feed(Input::ConsumerDisconnected(consumer));
    assert_eq!(world.warnings, ["session 1: the end of the trace file cannot be written: no space left"]);
    assert_eq!(world.closed_files, [FileId(1)]);
}

#[test]
fn data_sources_are_flushed_before_rare_writes_and_periodically_otherwise() {
    for (period_ms, mode, flushes) in
        [(6000, None, 1), (1000, None, 1), (1000, Some(WriteFlushMode(3)), 6), (1000, Some(WriteFlushMode(2)), 0)]
    {
        let mut world = World::new();
        let producer = world.producer("p");
        world.register(&producer, "ds");
        let consumer = world.consumer();
        let config = TraceConfig {
            file_write_period_ms: Some(period_ms),
            write_flush_mode: mode,
            flush_timeout_ms: Some(10),
            ..streaming(&["ds"])
        };
        world.enable_with(consumer, &config, true);
        let start_ms = world.now.monotonic_ns / 1_000_000;
        world.advance_ms(6000 - start_ms % 6000);
        world.commands(&producer);
        world.advance_ms(6000);
        let count = world.commands(&producer).iter().filter(|command| command.flush.is_some()).count();
        assert_eq!(count, flushes, "{period_ms} {mode:?}");
    }
}

#[test]
fn every_pass_is_synced_if_the_config_says_so() {
    let mut world = World::new();
    let consumer = world.consumer();
    let config = TraceConfig { fflush_post_write: Some(FFlushMode::FFLUSH_ENABLED), ..streaming(&[]) };
    world.enable_with(consumer, &config, true);
    world.advance_ms(3000);
    assert_eq!(world.synced_files.len(), 3);
}

#[test]
fn a_consumer_that_disconnects_leaves_a_complete_file() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    world.enable_with(consumer, &streaming(&["ds"]), true);
    for id in 0..20 {
        world.commit(&mut producer, 1, 1, id, &[&packet(&"x".repeat(2000))]);
    }
    world.feed(Input::ConsumerDisconnected(consumer));
    assert_eq!(texts(&world).len(), 20);
    let trace = TraceReader::new(&world.files[&FileId(1)]);
    let packets: Vec<_> = trace.packet().map(|packet| TracePacketReader::new(packet.as_bytes())).collect();
    assert!(packets.last().unwrap().trace_stats().is_some());
    assert_eq!(world.closed_files, [FileId(1)]);
}

/// Number of packets of 2 KB that [`full_streaming_session`] commits.
const PACKETS: u32 = 4000;

/// A session of uid 1000 that streams into a file and has 8 MiB in its buffer.
struct Streaming {
    world: World,
    producer: FakeProducer,
    consumer: ClientId,
    /// The EnableTracing call.
    end: CallId,
}

/// Begins a session that streams into a file, and commits more than a batch before its first write.
fn full_streaming_session() -> Streaming {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let config =
        TraceConfig { buffers: vec![buffer(16 << 10)], file_write_period_ms: Some(600_000), ..streaming(&["ds"]) };
    let end = world.enable_with(consumer, &config, true);
    for id in 0..PACKETS {
        world.commit(&mut producer, 1, 1, id, &[&packet(&"x".repeat(2000))]);
    }
    world.commands(&producer);
    world.writes_are_slow = true;
    Streaming { world, producer, consumer, end }
}

/// Frees a session with several MiB in its buffer. Each turn is bounded, the file is complete, and
/// the order is the same as for a small session.
#[test]
fn a_freed_session_completes_its_file_in_turns() {
    for frees in [true, false] {
        let Streaming { mut world, producer, consumer, end } = full_streaming_session();
        let before = world.service.work();
        if frees {
            world.consumer_call(consumer, method::FreeBuffers::METHOD, &[]);
        } else {
            world.feed(Input::ConsumerDisconnected(consumer));
        }
        let work = world.service.work() - before;
        assert!(world.commands(&producer).iter().any(|command| command.stop_data_source.is_some()));
        let mut turns = vec![work];
        while world.closed_files.is_empty() {
            assert_eq!(world.ended(end), None, "the consumer is told when the file is complete");
            let before = world.service.work();
            world.finish_slow_work();
            turns.push(world.service.work() - before);
        }
        assert!(turns.len() > 2 && turns.iter().all(|&work| work < 8000), "{turns:?}");
        assert_eq!(world.ended(end).is_some(), frees);
        assert_eq!(texts(&world).len(), PACKETS as usize);
        let trace = TraceReader::new(&world.files[&FileId(1)]);
        let packets: Vec<_> = trace.packet().map(|packet| TracePacketReader::new(packet.as_bytes())).collect();
        assert!(packets.last().unwrap().trace_stats().is_some());
        assert_eq!((world.service.buffer_bytes(), world.service.holdings().sessions), (0, 0));
        world.finish_slow_work();
        assert_eq!((world.warnings.len(), world.timers()), (0, 0));
    }
}

/// Frees a session of uid 1000 with 8 MiB in its buffer, whose file accepts nothing. Returns its
/// EnableTracing call.
fn stalled_drain() -> (World, CallId) {
    let Streaming { mut world, consumer, end, .. } = full_streaming_session();
    world.consumer_call(consumer, method::FreeBuffers::METHOD, &[]);
    assert!(world.service.is_draining());
    (world, end)
}

#[test]
fn a_freed_session_whose_file_accepts_nothing_is_given_up() {
    let (mut world, end) = stalled_drain();
    // Each batch gives it time again.
    for _ in 0..2 {
        world.advance_ms(59_000);
        world.finish_slow_work();
        assert!(world.service.is_draining());
    }
    world.advance_ms(59_000);
    assert!(world.service.is_draining() && world.ended(end).is_none());
    world.advance_ms(1_000);
    assert!(!world.service.is_draining());
    let error = world.ended(end).expect("its consumer is told");
    assert_eq!(error, "the trace file is incomplete: nothing could be written for 60 s");
    assert_eq!(world.warnings, [format!("session 1: {error}")]);
    assert_eq!(world.closed_files, [FileId(1)]);
    assert_eq!((world.service.buffer_bytes(), world.service.holdings().sessions, world.timers()), (0, 0, 0));
    // The batch that was being written is still completed, and belongs to no session any more.
    world.finish_slow_work();
    assert_eq!(world.closed_files, [FileId(1)]);
}

#[test]
fn an_exclusive_session_of_root_ends_freed_ones_that_complete_their_files() {
    let exclusive = TraceConfig { exclusive_prio: Some(1), buffers: vec![buffer(16 << 10)], ..config(&[]) };
    for (uid, is_ended) in [(1000, false), (1001, false), (0, true), (SERVICE_UID, true)] {
        let (mut world, end) = stalled_drain();
        // Without the end of the other one there is no room for its buffer.
        world.service.limit_buffers(if is_ended { 20 << 20 } else { 200 << 20 });
        let consumer = world.consumer_of(uid);
        let begun = world.enable(consumer, &exclusive);
        assert_eq!(world.ended(begun), None, "it runs");
        assert_eq!(world.service.is_draining(), !is_ended);
        let error = "the trace file is incomplete: ended by a session with exclusive_prio 1".to_owned();
        assert_eq!(world.ended(end), is_ended.then_some(error));
        assert_eq!(world.closed_files.len(), usize::from(is_ended));
    }
}

/// An exclusive session completes the files of the sessions that it ends, except those that were
/// being completed before.
#[test]
fn an_exclusive_session_of_root_lets_those_it_ends_complete_their_files() {
    let Streaming { mut world, .. } = full_streaming_session();
    let root = world.consumer_of(0);
    world.enable(root, &TraceConfig { exclusive_prio: Some(1), ..config(&[]) });
    assert!(world.service.is_draining());
    while world.service.is_draining() {
        world.finish_slow_work();
    }
    assert_eq!(texts(&world).len(), PACKETS as usize);
}

/// A producer leaves an unpatched packet in a freed session, and another producer gets its number
/// before the file is complete. Only the first producer may complete the packet.
#[test]
fn a_file_that_is_being_completed_is_not_patched_by_another_producer() {
    for goes in [false, true] {
        let Streaming { mut world, mut producer, consumer, .. } = full_streaming_session();
        let payload = chunk_payload(&[&packet("it is ....")]);
        let page = 100_000;
        let header = ChunkHeader { writer_id: 2, chunk_id: 0, count: 1, flags: 4 };
        world.memories[&producer.client].put(page, header, true, &payload);
        let moved = ChunksToMove { page: Some(page), chunk: Some(0), target_buffer: Some(1), ..Default::default() };
        world.commit_request(&producer, &CommitDataRequest { chunks_to_move: vec![moved], ..Default::default() });
        world.consumer_call(consumer, method::FreeBuffers::METHOD, &[]);
        if goes {
            world.feed(Input::ProducerDisconnected(producer.client));
            // Until numbers begin again.
            for _ in 0..65_534 {
                let other = world.producer("other");
                world.feed(Input::ProducerDisconnected(other.client));
            }
            producer = world.producer("same number");
            // Takes its memory, without which it cannot commit.
            let other = world.consumer();
            world.enable(other, &config(&["ds"]));
            world.register(&producer, "ds");
        }
        let offset = payload.len() as u32 - 4;
        let patch = Patch { offset: Some(offset), data: Some(b"done".to_vec()), ..Default::default() };
        let chunk = ChunkToPatch {
            target_buffer: Some(1),
            writer_id: Some(2),
            chunk_id: Some(0),
            patches: vec![patch],
            ..Default::default()
        };
        world.commit_request(&producer, &CommitDataRequest { chunks_to_patch: vec![chunk], ..Default::default() });
        while world.closed_files.is_empty() {
            world.finish_slow_work();
        }
        assert_eq!(texts(&world).contains(&"it is done".to_owned()), !goes);
    }
}

#[test]
fn a_detached_session_completes_its_file_when_its_time_is_over() {
    use esatto_protozero::Owned;
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let config = TraceConfig { duration_ms: Some(2500), ..streaming(&["ds"]) };
    world.enable_with(consumer, &config, true);
    let detach = esatto_schema::DetachRequest { key: Some("k".into()), ..Default::default() };
    world.consumer_call(consumer, method::Detach::METHOD, &detach.encode());
    world.feed(Input::ConsumerDisconnected(consumer));
    world.commit(&mut producer, 1, 1, 0, &[&packet("a")]);
    world.advance_ms(2500);
    world.acknowledge_flush(&producer, 1);
    world.advance_ms(5000);
    assert_eq!(texts(&world), ["a"]);
    assert_eq!(world.closed_files, [FileId(1)]);
    assert_eq!(world.timers(), 0, "the session is gone");
}

// Seed 201358 of the simulator.
#[test]
fn a_consumer_that_attaches_after_a_write_error_gets_the_error() {
    let mut world = World::new();
    let consumer = world.consumer();
    let end = world.enable_with(consumer, &streaming(&[]), true);
    world.file_error = Some("no space left".to_owned());
    world.advance_ms(1000);
    let expected = Some("the trace file cannot be written: no space left".to_owned());
    assert_eq!(world.ended(end), expected);
    detach(&mut world, consumer, "k");
    let other = world.consumer();
    attach(&mut world, other, "k");
    let end = wait_for_end(&mut world, other);
    assert_eq!(world.ended(end), expected);
}
