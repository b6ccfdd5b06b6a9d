//! Clones of sessions that stream into a file: a new file gets the content of the old one, and the
//! packets that were not written yet.

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use esatto_schema::{TraceConfig, TracePacketReader, TraceReader};
use esatto_service::{CallId, ClientId, FileId, Input};

use crate::clones::{answer, ask, by_id};
use crate::consumers::{attach, detach, wait_for_end};
use crate::world::{FakeProducer, World, config, packet, text_of};

/// The file of the session, and that of its first clone.
const FILE: FileId = FileId(1);
const COPY: FileId = FileId(2);

fn texts(world: &World, file: FileId) -> Vec<String> {
    let trace = TraceReader::parse(&world.files[&file]).expect("a file of whole packets");
    trace.packet().filter_map(|packet| text_of(packet.as_bytes())).collect()
}

/// A session that has written "a" into its file, and holds "b".
fn streaming() -> (World, FakeProducer, ClientId) {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let config = TraceConfig { write_into_file: Some(true), file_write_period_ms: Some(1000), ..config(&["ds"]) };
    world.enable_with(consumer, &config, true);
    world.commit(&mut producer, 1, 1, 0, &[&packet("a")]);
    world.advance_ms(1000);
    world.commit(&mut producer, 1, 1, 1, &[&packet("b")]);
    assert_eq!(texts(&world, FILE), ["a"]);
    (world, producer, consumer)
}

fn begin(world: &mut World) -> (ClientId, CallId) {
    let cloner = world.consumer();
    let call = ask(world, cloner, &by_id(1));
    (cloner, call)
}

#[test]
fn a_copy_holds_the_file_and_the_unwritten_data() {
    let (mut world, mut producer, consumer) = streaming();
    let (cloner, call) = begin(&mut world);
    // While data sources flush, the session continues to write.
    world.commit(&mut producer, 1, 1, 2, &[&packet("c")]);
    world.advance_ms(1000);
    assert_eq!(texts(&world, FILE), ["a", "b", "c"]);
    world.commit(&mut producer, 1, 1, 3, &[&packet("d")]);
    world.acknowledge_flush(&producer, u64::MAX);

    let response = answer(&world, call).unwrap();
    assert_eq!((response.success, response.was_write_into_file), (Some(true), Some(true)));
    assert_eq!(texts(&world, COPY), ["a", "b", "c", "d"]);
    assert_eq!((&world.synced_files[..], &world.closed_files[..]), (&[COPY][..], &[COPY][..]));
    assert!(world.read(cloner).is_empty(), "all of it is in the file");
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    assert_eq!(texts(&world, FILE), ["a", "b", "c", "d"]);

    let sequences = |file| {
        let trace = TraceReader::new(&world.files[&file]);
        let ids: Vec<_> = trace
            .packet()
            .filter(|packet| packet.for_testing().is_some())
            .map(|packet| packet.trusted_packet_sequence_id().unwrap())
            .collect();
        ids
    };
    assert!(sequences(COPY).windows(2).all(|pair| pair[0] == pair[1]), "one sequence has one number");
    assert_eq!(sequences(COPY), sequences(FILE));
    let trace = TraceReader::new(&world.files[&COPY]);
    assert!(trace.packet().last().unwrap().trace_stats().is_some());
    let clone_started = |p: &TracePacketReader<'_>| p.service_event().is_some_and(|e| e.clone_started().is_some());
    assert!(trace.packet().any(|packet| clone_started(&packet)));
}

#[test]
fn without_a_descriptor_such_a_session_is_not_cloned() {
    use esatto_protozero::Owned;
    let (mut world, _, _) = streaming();
    let cloner = world.consumer();
    let call = world.consumer_call(cloner, method::CloneSession::METHOD, &by_id(1).encode());
    assert!(answer(&world, call).unwrap().error.unwrap().to_string().contains("file descriptor"));
}

#[test]
fn a_failed_copy_makes_no_clone() {
    let (mut world, producer, consumer) = streaming();
    world.file_error = Some("no space".to_owned());
    let (cloner, call) = begin(&mut world);
    world.acknowledge_flush(&producer, u64::MAX);
    let response = answer(&world, call).unwrap();
    assert_eq!(response.success, Some(false));
    assert!(response.error.unwrap().to_string().contains("no space"));
    assert_eq!(world.closed_files, [COPY]);
    world.file_error = None;
    let end = world.enable(cloner, &config(&[]));
    assert_eq!(world.ended(end), None, "the consumer is free");
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    assert_eq!(texts(&world, FILE), ["a", "b"]);
}

#[test]
fn a_slow_copy_does_not_delay_the_session() {
    let (mut world, mut producer, _) = streaming();
    world.copies_are_slow = true;
    let (cloner, call) = begin(&mut world);
    world.acknowledge_flush(&producer, u64::MAX);
    world.commit(&mut producer, 1, 1, 2, &[&packet("c")]);
    world.advance_ms(1000);
    assert_eq!(texts(&world, FILE), ["a", "b", "c"]);
    assert_eq!(answer(&world, call), None);
    world.finish_slow_work();
    assert_eq!(answer(&world, call).unwrap().success, Some(true));
    assert_eq!(texts(&world, COPY), ["a", "b"]);
    world.consumer_call(cloner, method::FreeBuffers::METHOD, &[]);
    assert_eq!(world.closed_files, [COPY]);
}

#[test]
fn a_clone_that_is_freed_while_it_is_copied_closes_its_file() {
    for disconnects in [false, true] {
        let (mut world, producer, _) = streaming();
        world.copies_are_slow = true;
        let (cloner, call) = begin(&mut world);
        world.acknowledge_flush(&producer, u64::MAX);
        if disconnects {
            world.feed(Input::ConsumerDisconnected(cloner));
            assert_eq!(answer(&world, call), None);
        } else {
            world.consumer_call(cloner, method::FreeBuffers::METHOD, &[]);
            assert_eq!(answer(&world, call).unwrap().success, Some(false));
        }
        world.finish_slow_work();
        assert_eq!(world.closed_files, [COPY]);
    }
}

#[test]
fn a_clone_of_a_session_that_ends_meanwhile_fails() {
    let (mut world, producer, consumer) = streaming();
    let (_, call) = begin(&mut world);
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    world.acknowledge_flush(&producer, u64::MAX);
    let response = answer(&world, call).unwrap();
    assert_eq!(response.success, Some(false));
    assert_eq!(world.closed_files, [FILE, COPY]);
}

#[test]
fn after_the_end_only_the_buffered_packets_remain() {
    let (mut world, _, consumer) = streaming();
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    let (cloner, call) = begin(&mut world);
    let response = answer(&world, call).unwrap();
    assert_eq!((response.success, response.was_write_into_file), (Some(true), Some(false)));
    assert!(world.read_texts(cloner).is_empty());
}

#[test]
fn a_copy_stays_below_the_limit_of_the_session() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let limited = TraceConfig {
        write_into_file: Some(true),
        file_write_period_ms: Some(1000),
        max_file_size_bytes: Some(3000),
        ..config(&["ds"])
    };
    world.enable_with(consumer, &limited, true);
    world.advance_ms(1000);
    world.commit(&mut producer, 1, 1, 0, &[&packet(&"x".repeat(2500))]);
    let (_, call) = begin(&mut world);
    world.acknowledge_flush(&producer, u64::MAX);
    assert_eq!(answer(&world, call).unwrap().success, Some(true));
    assert!(world.files[&COPY].len() < 3000);
    assert!(texts(&world, COPY).is_empty());
}

/// A clone that is still being copied when its consumer detaches it; the call that asks for it is
/// open.
fn detached_while_copied() -> (World, CallId) {
    let (mut world, producer, _) = streaming();
    world.copies_are_slow = true;
    let (cloner, call) = begin(&mut world);
    world.acknowledge_flush(&producer, u64::MAX);
    detach(&mut world, cloner, "k");
    assert_eq!(answer(&world, call), None);
    (world, call)
}

// Seeds 200431, 200478, 201010, 201420 and 202025 of the simulator.
#[test]
fn a_clone_that_is_detached_while_it_is_copied_is_answered_and_then_freed() {
    let (mut world, call) = detached_while_copied();
    world.finish_slow_work();
    assert_eq!(answer(&world, call).unwrap().success, Some(true));
    assert_eq!((texts(&world, COPY), &world.closed_files[..]), (vec!["a".to_owned(), "b".to_owned()], &[COPY][..]));
    let late = world.consumer();
    let attached = attach(&mut world, late, "k");
    assert_eq!(world.rejected, [attached], "what the clone holds is in its file, so nothing is left to attach to");
}

// Seeds 200249, 200490 and 200826 of the simulator.
#[test]
fn a_consumer_that_attached_during_the_copy_gets_the_end_of_the_clone() {
    for error in [None, Some("no space")] {
        let (mut world, producer, _) = streaming();
        world.copies_are_slow = true;
        world.file_error = error.map(str::to_owned);
        let (cloner, call) = begin(&mut world);
        world.acknowledge_flush(&producer, u64::MAX);
        detach(&mut world, cloner, "k");
        let other = world.consumer();
        attach(&mut world, other, "k");
        let end = wait_for_end(&mut world, other);
        assert_eq!((answer(&world, call), world.ended(end)), (None, None));
        world.file_error = None;
        world.finish_slow_work();
        assert_eq!(answer(&world, call).unwrap().success, Some(error.is_none()));
        let expected = error.map(|error| format!("the trace file cannot be copied: {error}"));
        assert_eq!(world.ended(end), Some(expected.unwrap_or_default()));
        assert!(world.rejected.is_empty());
        assert_eq!(world.closed_files, [COPY]);
    }
}

#[test]
fn a_consumer_that_frees_a_clone_while_it_is_copied_waits_no_longer_for_its_end() {
    let (mut world, call) = detached_while_copied();
    let other = world.consumer();
    attach(&mut world, other, "k");
    let end = wait_for_end(&mut world, other);
    world.consumer_call(other, method::FreeBuffers::METHOD, &[]);
    assert_eq!(answer(&world, call).unwrap().success, Some(false));
    assert!(world.is_answered(end));
    world.finish_slow_work();
    assert_eq!(world.closed_files, [COPY]);
}
