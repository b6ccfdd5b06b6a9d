//! Sessions whose producers have more shared memory than the service copies in one step. It copies
//! in turns, and answers the calls that wait for the copies after the last one.

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use esatto_protozero::Owned;
use esatto_schema::trace_config::DataSource;
use esatto_schema::{FlushRequest, TraceConfig, TraceReader};
use esatto_service::{CallId, ChunkHeader, ClientId, FileId, Input};

use crate::world::{FakeProducer, World, buffer, chunk_payload, config, packet, source, text_of};

const PRODUCERS: u32 = 60;
const CHUNKS: u32 = 50;
/// Scraping one of the memories costs that at least, and at most three times as much.
const ONE_MEMORY: u64 = CHUNKS as u64 * 4000 / 64;
/// Work of a step that scrapes.
const MOST: u64 = (16 << 10) + 3 * ONE_MEMORY + 2000;

/// A session with many producers, in whose memories are this many chunks each, none committed.
fn crowd(config: &TraceConfig) -> (World, Vec<FakeProducer>, ClientId, CallId) {
    let mut world = World::new();
    let consumer = world.consumer();
    let end = world.enable_with(consumer, config, config.write_into_file.is_some());
    let mut producers = Vec::new();
    for index in 0..PRODUCERS {
        let producer = world.scraped_producer(&format!("p{index}"));
        world.register(&producer, "ds");
        world.register_writer(&producer, 1, 1);
        for chunk in 0..CHUNKS {
            put(&world, &producer, chunk, &format!("{index} {chunk}"));
        }
        producers.push(producer);
    }
    (world, producers, consumer, end)
}

fn put(world: &World, producer: &FakeProducer, chunk: u32, text: &str) {
    let text = packet(&format!("{text:.<3990}"));
    let header = ChunkHeader { writer_id: 1, chunk_id: chunk, count: 1, flags: 0 };
    world.memories[&producer.client].put(chunk, header, true, &chunk_payload(&[&text]));
}

fn large() -> TraceConfig {
    TraceConfig { buffers: vec![buffer(32 << 10)], ..config(&["ds"]) }
}

fn streaming() -> TraceConfig {
    TraceConfig { write_into_file: Some(true), file_write_period_ms: Some(600_000), ..large() }
}

fn flush(world: &mut World, consumer: ClientId, timeout_ms: u32) -> CallId {
    let request = FlushRequest { timeout_ms: Some(timeout_ms), ..Default::default() }.encode();
    world.consumer_call(consumer, method::Flush::METHOD, &request)
}

/// Runs the steps that are due now; how many there were, and the greatest work of one.
fn steps(world: &mut World) -> (u64, u64) {
    let (mut count, mut most, mut before) = (0, 0, world.service.work());
    while world.expire_one() {
        let work = world.service.work();
        (count, most, before) = (count + 1, most.max(work - before), work);
    }
    (count, most)
}

fn file_packets(world: &World) -> usize {
    let trace = TraceReader::parse(&world.files[&FileId(1)]).expect("a file of whole packets");
    trace.packet().filter(|packet| text_of(packet.as_bytes()).is_some()).count()
}

#[test]
fn a_flush_is_answered_after_the_last_memory() {
    let (mut world, producers, consumer, _) = crowd(&large());
    let call = flush(&mut world, consumer, 10_000);
    let mut before = world.service.work();
    for producer in &producers {
        before = world.service.work();
        world.acknowledge_flush(producer, u64::MAX);
    }
    let first = world.service.work() - before;
    assert!(first <= MOST, "{first} for the last answer");
    assert!(!world.is_answered(call), "there is more to copy");
    // Other clients get their turn, and so does a second flush, which also wants later packets.
    let other = world.consumer();
    let question = world.consumer_call(other, method::QueryCapabilities::METHOD, &[]);
    assert!(world.is_answered(question));
    put(&world, &producers[0], CHUNKS, "newer");
    let second = flush(&mut world, consumer, 10_000);
    for producer in &producers {
        world.acknowledge_flush(producer, u64::MAX);
    }
    let (count, most) = steps(&mut world);
    assert!(count >= u64::from(PRODUCERS) * ONE_MEMORY / MOST, "{count} steps");
    assert!(most <= MOST, "{most} in one step");
    assert!(world.is_answered(call) && world.is_answered(second));
    let texts = world.read_texts(consumer);
    assert_eq!(texts.len(), (PRODUCERS * CHUNKS) as usize + 1);
    assert!(texts.iter().any(|text| text.starts_with("newer")));
}

#[test]
fn a_late_answer_to_a_flush_that_timed_out_ends_it_once() {
    let (mut world, producers, consumer, _) = crowd(&large());
    let call = flush(&mut world, consumer, 100);
    for producer in &producers[1..] {
        world.acknowledge_flush(producer, u64::MAX);
    }
    let now_ns = world.now.monotonic_ns;
    while world.now.monotonic_ns < now_ns + 100_000_000 {
        assert!(world.expire_next(), "a timer ends the flush");
    }
    assert!(!world.rejected.contains(&call), "there is more to copy");
    world.acknowledge_flush(&producers[0], u64::MAX);
    let (_, most) = steps(&mut world);
    assert!(most <= MOST, "{most} in one step");
    assert_eq!(world.rejected.iter().filter(|rejected| **rejected == call).count(), 1);
    assert!(!world.replies.contains_key(&call));
    world.service.assert_consistent();
    assert_eq!(world.read_texts(consumer).len(), (PRODUCERS * CHUNKS) as usize);
}

#[test]
fn a_session_ends_after_the_last_memory() {
    for streams in [false, true] {
        let (mut world, producers, consumer, end) = crowd(&if streams { streaming() } else { large() });
        let before = world.service.work();
        world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
        let first = world.service.work() - before;
        assert!(first <= MOST, "{first} to stop");
        assert_eq!(world.ended(end), None, "there is more to copy");
        // Nothing that happens meanwhile ends it twice, or keeps it alive.
        world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
        let late = flush(&mut world, consumer, 10_000);
        assert!(world.rejected.contains(&late), "it stops");
        world.feed(Input::ProducerDisconnected(producers[PRODUCERS as usize - 1].client));
        let (_, most) = steps(&mut world);
        if !streams {
            assert!(most <= MOST, "{most} in one step");
        }
        assert_eq!(world.ended(end).as_deref(), Some(""));
        let found = if streams { file_packets(&world) } else { world.read_texts(consumer).len() };
        assert_eq!(found, (PRODUCERS * CHUNKS) as usize);
        world.service.assert_consistent();
    }
}

#[test]
fn freeing_a_session_during_a_scrape_leaves_nothing() {
    let (mut world, producers, consumer, _) = crowd(&large());
    let call = flush(&mut world, consumer, 10_000);
    for producer in &producers {
        world.acknowledge_flush(producer, u64::MAX);
    }
    let before = world.service.work();
    world.consumer_call(consumer, method::FreeBuffers::METHOD, &[]);
    let work = world.service.work() - before;
    assert!(work <= MOST, "{work} to free it: nobody sees the copies");
    assert!(world.rejected.contains(&call));
    assert_eq!(steps(&mut world).0, 0, "no timer is left");
    world.service.assert_consistent();
}

#[test]
fn a_freed_session_writes_uncommitted_chunks_into_its_file() {
    let (mut world, _, consumer, _) = crowd(&streaming());
    world.feed(Input::ConsumerDisconnected(consumer));
    world.finish_slow_work();
    steps(&mut world);
    assert_eq!(file_packets(&world), (PRODUCERS * CHUNKS) as usize);
    assert_eq!(world.closed_files, [FileId(1)]);
    assert!(!world.warnings.iter().any(|text| text.contains("lacks")));
    world.service.assert_consistent();
}

/// A freed session may have gigabytes in all its memories, which are not worth a step of any
/// length.
#[test]
fn scraping_for_a_freed_session_is_bounded() {
    let (mut world, producers, consumer, _) = crowd(&streaming());
    for producer in &producers {
        for chunk in CHUNKS..10 * CHUNKS {
            put(&world, producer, chunk, "more");
        }
    }
    let before = world.service.work();
    world.feed(Input::ConsumerDisconnected(consumer));
    let work = world.service.work() - before;
    assert!(work <= 2 << 20, "{work} to free it");
    let warned = world.warnings.iter().filter(|text| text.contains("its file lacks some uncommitted data"));
    assert_eq!(warned.count(), 1, "{:?}", world.warnings);
    world.service.assert_consistent();
}

#[test]
fn the_end_of_a_producer_gives_unregistered_writers_its_only_buffer() {
    for (buffers, expected) in [(1, 1), (2, 0)] {
        let sources = [source("ds"), DataSource { config: source("ds").config, ..Default::default() }];
        let mut sources = sources.to_vec();
        if let Some(config) = &mut sources[1].config {
            config.target_buffer = Some(buffers - 1);
        }
        let mut world = World::new();
        let consumer = world.consumer();
        let all = vec![buffer(64), buffer(64)];
        world.enable(consumer, &TraceConfig { buffers: all, data_sources: sources, ..config(&[]) });
        let producer = world.scraped_producer("p");
        world.register(&producer, "ds");
        let header = ChunkHeader { writer_id: 7, chunk_id: 0, count: 1, flags: 0 };
        world.memories[&producer.client].put(0, header, true, &chunk_payload(&[&packet("last words")]));
        flush(&mut world, consumer, 10);
        world.advance_ms(20);
        assert_eq!(world.read_texts(consumer).len(), 0, "the writer may be registered later");
        world.feed(Input::ProducerDisconnected(producer.client));
        assert_eq!(world.read_texts(consumer).len(), expected);
    }
}

#[test]
fn the_end_of_a_producer_gives_nothing_of_an_ended_session_to_another() {
    for ends in [false, true] {
        let mut world = World::new();
        let [first, second] = [(); 2].map(|()| world.consumer());
        for consumer in [first, second] {
            world.enable(consumer, &config(&["ds"]));
        }
        let producer = world.scraped_producer("p");
        world.register(&producer, "ds");
        world.register_writer(&producer, 7, 1);
        let header = ChunkHeader { writer_id: 7, chunk_id: 0, count: 1, flags: 0 };
        if ends {
            world.consumer_call(first, method::FreeBuffers::METHOD, &[]);
        }
        world.memories[&producer.client].put(0, header, true, &chunk_payload(&[&packet("of the first")]));
        world.feed(Input::ProducerDisconnected(producer.client));
        assert_eq!(world.read_texts(second).len(), 0);
        if !ends {
            assert_eq!(world.read_texts(first), ["of the first"]);
        }
    }
}
