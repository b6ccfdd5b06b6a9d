//! Commits that lie (`docs/spec/shared-memory.md §18, §22`).

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use esatto_protozero::Owned;
use esatto_schema::commit_data_request::{ChunkToPatch, ChunksToMove, chunk_to_patch::Patch};
use esatto_schema::{CommitDataRequest, GetTraceStatsResponse, InitializeConnectionRequest, TraceStats};
use esatto_service::{ChunkHeader, ClientId, Input, MemoryKind};

use crate::world::{FakeProducer, World, chunk_payload, config, packet};

fn started(producer: impl FnOnce(&mut World) -> FakeProducer) -> (World, FakeProducer, ClientId) {
    let mut world = World::new();
    let producer = producer(&mut world);
    world.register(&producer, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    (world, producer, consumer)
}

fn stats(world: &mut World, consumer: ClientId) -> TraceStats {
    let call = world.consumer_call(consumer, method::GetTraceStats::METHOD, &[]);
    let reply = world.replies[&call][0].body.as_bytes().to_vec();
    *GetTraceStatsResponse::decode(&reply).unwrap().trace_stats.unwrap()
}

fn header(writer_id: u16, chunk_id: u32, count: u16) -> ChunkHeader {
    ChunkHeader { writer_id, chunk_id, count, flags: 0 }
}

#[test]
fn case_47_a_commit_of_a_chunk_that_is_not_complete_is_skipped() {
    let (mut world, producer, consumer) = started(|world| world.producer("p"));
    world.memories[&producer.client].put(0, header(1, 0, 2), false, b"\x01a\x01b");
    for (page, chunk) in [(0, 0), (0, 13), (7, 0), (u32::MAX, u32::MAX)] {
        let chunk = ChunksToMove { page: Some(page), chunk: Some(chunk), target_buffer: Some(1), ..Default::default() };
        world.commit_request(&producer, &CommitDataRequest { chunks_to_move: vec![chunk], ..Default::default() });
    }
    assert_eq!(world.memories[&producer.client].chunks(), 1);
    let stats = stats(&mut world, consumer);
    assert_eq!((stats.chunks_discarded, stats.buffer_stats[0].chunks_written), (Some(0), Some(0)));
}

#[test]
fn case_48_a_commit_to_a_foreign_buffer_is_freed_and_counted() {
    let (mut world, mut producer, consumer) = started(|world| world.producer("p"));
    let other = world.consumer();
    world.enable(other, &config(&[]));
    for (target, chunk_id) in [(2, 0), (3, 1), (0, 2), (65537, 3), (u32::MAX, 4)] {
        world.commit(&mut producer, target, 1, chunk_id, &[&packet("x")]);
    }
    assert_eq!(world.memories[&producer.client].chunks(), 0);
    assert_eq!(stats(&mut world, consumer).chunks_discarded, Some(5));
    assert!(world.read_texts(consumer).is_empty() && world.read_texts(other).is_empty());
}

#[test]
fn case_49_a_registered_writer_keeps_to_its_buffer() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let other = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    world.enable(other, &config(&["ds"]));
    world.register_writer(&producer, 1, 1);
    world.commit(&mut producer, 2, 1, 0, &[&packet("wrong")]);
    world.commit(&mut producer, 1, 1, 1, &[&packet("right")]);
    world.commit(&mut producer, 2, 2, 0, &[&packet("unregistered")]);
    assert_eq!(world.read_texts(consumer), ["right"]);
    assert_eq!(world.read_texts(other), ["unregistered"]);
    assert_eq!(stats(&mut world, consumer).chunks_discarded, Some(1));
}

#[test]
fn writer_0_is_invalid_and_all_other_16_bit_ids_are_valid() {
    let (mut world, mut producer, consumer) = started(|world| world.producer("p"));
    world.commit(&mut producer, 1, 0, 0, &[&packet("x")]);
    assert_eq!(stats(&mut world, consumer).chunks_discarded, Some(1));
    for writer in [1, 32768, 65535] {
        world.commit(&mut producer, 1, writer, 0, &[&packet("x")]);
    }
    assert_eq!(stats(&mut world, consumer).chunks_discarded, Some(1));
    assert_eq!(world.read_texts(consumer).len(), 3);
}

#[test]
fn chunks_by_value_are_taken_beside_shared_memory() {
    let (mut world, producer, consumer) = started(|world| world.producer("p"));
    let mut data = vec![0, 0, 0, 0, 1, 0, 1, 0];
    data.extend_from_slice(&chunk_payload(&[&packet("x")]));
    // The chunk of a page is not touched, whatever the numbers say.
    let (page, chunk) = (Some(3), Some(15));
    let sent = |target_buffer| {
        let data = Some(data.clone());
        ChunksToMove { page, chunk, target_buffer, data, ..Default::default() }
    };
    let commit = CommitDataRequest { chunks_to_move: vec![sent(Some(9)), sent(Some(1))], ..Default::default() };
    world.commit_request(&producer, &commit);
    assert_eq!(world.read_texts(consumer), ["x"]);
    assert_eq!(stats(&mut world, consumer).chunks_discarded, Some(1), "the producer may not write there");
}

#[test]
fn case_62_chunks_by_value_of_every_size() {
    let emulated =
        |world: &mut World| world.producer_with(&InitializeConnectionRequest::default(), MemoryKind::Emulated);
    let (mut world, producer, consumer) = started(emulated);
    assert!(world.created.is_empty(), "no memory is made for those who cannot share it");
    let setup = world.commands(&producer).remove(0).setup_tracing.unwrap();
    assert_eq!(setup.shared_buffer_page_size_kb, Some(4));
    for (id, size) in [0u32, 7, 8, 65535, 65536].into_iter().zip([0, 7, 8, 65535, 65536]) {
        let mut data = vec![0; size];
        if size >= 8 {
            data[..4].copy_from_slice(&id.to_le_bytes());
            data[4] = 1;
            data[6] = 1;
        }
        let chunk = ChunksToMove { data: Some(data), target_buffer: Some(1), ..Default::default() };
        world.commit_request(&producer, &CommitDataRequest { chunks_to_move: vec![chunk], ..Default::default() });
    }
    let stats = stats(&mut world, consumer);
    assert_eq!(stats.buffer_stats[0].chunks_written, Some(2));
}

#[test]
fn patches_that_are_wrong_are_counted_and_do_not_release_the_chunk() {
    let (mut world, mut producer, consumer) = started(|world| world.producer("p"));
    let payload = chunk_payload(&[&packet("x")]);
    let memory = world.memories[&producer.client].clone();
    memory.put(100, ChunkHeader { flags: 4, ..header(1, 0, 1) }, true, &payload);
    let chunk = ChunksToMove { page: Some(100), target_buffer: Some(1), ..Default::default() };
    world.commit_request(&producer, &CommitDataRequest { chunks_to_move: vec![chunk], ..Default::default() });
    let patch = |size: usize| Patch { offset: Some(0), data: Some(vec![0; size]), ..Default::default() };
    let mut send = |writer_id, target_buffer, patches| {
        let chunk = ChunkToPatch {
            writer_id: Some(writer_id),
            target_buffer: Some(target_buffer),
            chunk_id: Some(0),
            patches,
            ..Default::default()
        };
        world.commit_request(&producer, &CommitDataRequest { chunks_to_patch: vec![chunk], ..Default::default() });
    };
    send(0, 1, vec![patch(4)]);
    send(32768, 1, vec![patch(4)]);
    send(65537, 1, vec![patch(4); 2]);
    send(1, 9, vec![patch(4)]);
    send(1, 65537, vec![patch(4)]);
    send(1, 1, vec![patch(3), patch(5), patch(0)]);
    send(1, 1, vec![patch(4); 1025]);
    assert!(world.read_texts(consumer).is_empty(), "the chunk waits");
    assert_eq!(stats(&mut world, consumer).patches_discarded, Some(6 + 3 + 1025));
    let chunk = ChunkToPatch { writer_id: Some(1), target_buffer: Some(1), chunk_id: Some(0), ..Default::default() };
    world.commit_request(&producer, &CommitDataRequest { chunks_to_patch: vec![chunk], ..Default::default() });
    assert_eq!(world.read_texts(consumer), ["x"]);
    world.commit(&mut producer, 1, 1, 1, &[&packet("y")]);
    assert_eq!(world.read_texts(consumer), ["y"]);
}

#[test]
fn patches_cannot_reach_the_chunks_of_another_producer() {
    let mut world = World::new();
    let mut victim = world.producer("victim");
    let attacker = world.producer("attacker");
    world.register(&victim, "ds");
    world.register(&attacker, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    world.commit(&mut victim, 1, 1, 0, &[&packet("victim")]);
    let patches = vec![Patch { offset: Some(0), data: Some(vec![0; 4]), ..Default::default() }];
    let chunk =
        ChunkToPatch { writer_id: Some(1), target_buffer: Some(1), chunk_id: Some(0), patches, ..Default::default() };
    world.commit_request(&attacker, &CommitDataRequest { chunks_to_patch: vec![chunk], ..Default::default() });
    assert_eq!(world.read_texts(consumer), ["victim"]);
}

#[test]
fn an_acknowledgement_counts_for_its_own_producer_only() {
    let mut world = World::new();
    let first = world.producer("a");
    let second = world.producer("b");
    world.register(&first, "ds");
    world.register(&second, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &config(&["ds"]));
    let flush = world.consumer_call(consumer, method::Flush::METHOD, &[]);
    world.acknowledge_flush(&first, u64::MAX);
    assert!(!world.is_answered(flush));
    world.acknowledge_flush(&second, u64::MAX);
    assert!(world.is_answered(flush));
}

mod scraping {
    use super::*;

    fn flush(world: &mut World, producer: &FakeProducer, consumer: ClientId) {
        let flush = world.consumer_call(consumer, method::Flush::METHOD, &[]);
        world.acknowledge_flush(producer, u64::MAX);
        assert!(world.is_answered(flush));
    }

    fn put(world: &World, producer: &FakeProducer, count: u16, complete: bool) {
        let payload = chunk_payload(&[&packet("1"), &packet("2"), &packet("3"), &packet("4")]);
        world.memories[&producer.client].put(0, header(1, 0, count), complete, &payload);
    }

    #[test]
    fn cases_52_to_54_and_57_only_finished_fragments_are_scraped() {
        for (count, complete, expected) in
            [(1, false, &[][..]), (4, false, &["1", "2", "3"]), (4, true, &["1", "2", "3", "4"])]
        {
            let (mut world, producer, consumer) = started(|world| world.scraped_producer("p"));
            world.register_writer(&producer, 1, 1);
            put(&world, &producer, count, complete);
            flush(&mut world, &producer, consumer);
            flush(&mut world, &producer, consumer);
            assert_eq!(world.read_texts(consumer), expected);
            flush(&mut world, &producer, consumer);
            assert!(world.read_texts(consumer).is_empty(), "nothing comes twice");
            // Now the producer commits it.
            put(&world, &producer, 4, true);
            let chunk = ChunksToMove { page: Some(0), target_buffer: Some(1), ..Default::default() };
            world.commit_request(&producer, &CommitDataRequest { chunks_to_move: vec![chunk], ..Default::default() });
            assert_eq!(world.read_texts(consumer), ["1", "2", "3", "4"][expected.len()..]);
        }
    }

    #[test]
    fn cases_55_and_56_only_registered_writers_of_willing_producers() {
        let (mut world, producer, consumer) = started(|world| world.scraped_producer("p"));
        put(&world, &producer, 4, true);
        flush(&mut world, &producer, consumer);
        assert!(world.read_texts(consumer).is_empty());

        let (mut world, producer, consumer) = started(|world| world.producer("p"));
        world.register_writer(&producer, 1, 1);
        put(&world, &producer, 4, true);
        flush(&mut world, &producer, consumer);
        assert!(world.read_texts(consumer).is_empty());
    }

    #[test]
    fn case_58_the_open_chunk_of_a_producer_that_goes() {
        let (mut world, producer, consumer) = started(|world| world.scraped_producer("p"));
        world.register_writer(&producer, 1, 1);
        put(&world, &producer, 4, false);
        world.feed(Input::ProducerDisconnected(producer.client));
        assert_eq!(world.read_texts(consumer), ["1", "2", "3"]);
    }

    #[test]
    fn a_session_that_ends_is_scraped() {
        let (mut world, producer, consumer) = started(|world| world.scraped_producer("p"));
        world.register_writer(&producer, 1, 1);
        put(&world, &producer, 4, false);
        world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
        assert_eq!(world.read_texts(consumer), ["1", "2", "3"]);
    }

    #[test]
    fn a_writer_cannot_be_registered_for_a_foreign_buffer() {
        let (mut world, producer, consumer) = started(|world| world.scraped_producer("p"));
        let other = world.consumer();
        world.enable(other, &config(&[]));
        world.register_writer(&producer, 1, 2);
        put(&world, &producer, 4, true);
        flush(&mut world, &producer, consumer);
        world.feed(Input::ProducerDisconnected(producer.client));
        assert!(world.read_texts(other).is_empty());
    }
}
