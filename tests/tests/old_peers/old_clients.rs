//! Old clients of our service, and as a control of Perfetto's.

use esatto_tests::raw::{
    FIRST_CONTINUES, LAST_CONTINUES, NEEDS_PATCHING, ONE_BEING_WRITTEN, ONE_COMPLETE, RawChunk, RawConsumer,
    RawProducer, moved, packet, patched,
};
use esatto_tests::wire::{self, Peer, Proto};
use esatto_tests::{Harness, Implementation, Skip};

/// A field with a message, its length in four bytes.
fn wide(field: u32, message: &Proto) -> Proto {
    Proto::new().wide(field, &message.0)
}

/// A TraceConfig as the first command line sent it: one buffer, one data source, nothing else.
fn config() -> Proto {
    let source = wide(1, &Proto::new().wide(1, b"old").int(2, 0));
    Proto::new().wide(1, &Proto::new().int(1, 256).0).wide(2, &source.0)
}

/// Connects, binds, and then sends lengths of four bytes.
fn old(mut peer: Peer) -> Peer {
    peer.write_wide();
    peer
}

/// A producer of the first release: its name and the hints, no scraping mode, no version.
fn old_producer(harness: &Harness) -> RawProducer {
    let introduction = Proto::new().int(1, 4096).int(2, 16384).wide(3, b"old.producer");
    let mut producer = RawProducer::introduce(old(Peer::producer(harness)), &introduction, &[]);
    // No id, no acknowledgements.
    let descriptor = wide(1, &Proto::new().wide(1, b"old"));
    let (id, frame) = producer.peer.call_frame("RegisterDataSource", &descriptor);
    producer.peer.send(&frame);
    assert!(producer.peer.reply_to(id).success);
    producer
}

fn old_consumer(harness: &Harness) -> RawConsumer {
    let mut consumer = RawConsumer::connect(harness);
    consumer.peer.write_wide();
    consumer
}

/// A chunk as writers before v41 made it: sizes in four bytes, nothing after the last packet.
fn old_chunk(chunk_id: u32, fragments: &[&[u8]], flags: u16) -> RawChunk {
    let mut payload = Vec::new();
    for fragment in fragments {
        // Without the tag.
        payload.extend_from_slice(&Proto::new().wide(1, fragment).0[1..]);
    }
    let count = u16::try_from(fragments.len()).expect("few");
    RawChunk { writer_id: 1, chunk_id, count, flags, payload }
}

/// Commits page 0 with drop_reply, so the call has no answer.
fn commit_silently(producer: &mut RawProducer, buffer: u64, chunk: &RawChunk) {
    producer.put(0, ONE_COMPLETE, chunk);
    let args = wide(1, &moved(0, 0, buffer));
    // CommitData is method 4 in every list; drop_reply is field 4.
    let invoke = Proto::new().int(1, 1).int(2, 4).wide(3, &args.0).int(4, 1);
    producer.peer.send(&Proto::new().int(2, 999).wide(5, &invoke.0).frame());
    // The call had no answer, and was done before the next call is answered.
    let reply = producer.commit(&Proto::new());
    assert!(reply.success && reply.request_id != 999);
    assert_eq!(producer.word(0), 0, "the chunk is free again");
}

mod clients_of_the_first_release {
    use super::*;

    esatto_tests::for_each_service!(scenario);

    fn scenario(implementation: Implementation) -> Result<(), Skip> {
        let harness = Harness::new();
        let mut service = harness.service(implementation);
        let mut producer = old_producer(&harness);
        let mut consumer = old_consumer(&harness);
        let request = wide(1, &config());
        let (enabled, frame) = consumer.peer.call_frame("EnableTracing", &request);
        consumer.peer.send(&frame);

        // It does not know setup_data_source (6) and acts on start (1).
        let start = producer.await_command(1);
        assert!(producer.has_memory() && producer.pages() == 4, "the size that it hinted at");
        let buffer = wire::int(wire::last(&start, 2).expect("a config"), 2);
        let first = packet(1, "one");
        let long = packet(2, &"x".repeat(5000));
        let (head, tail) = long.split_at(4000);
        commit_silently(&mut producer, buffer, &old_chunk(0, &[&first, head], LAST_CONTINUES | NEEDS_PATCHING));
        commit_silently(&mut producer, buffer, &old_chunk(1, &[tail], FIRST_CONTINUES));
        // One of the text's bytes, so that it can be told; a patch is four bytes.
        let patch = patched(buffer, 1, 0, &[(4 + first.len() as u64 + 4 + 100, b"ABCD")], false);
        assert!(producer.commit(&wide(2, &patch)).success);

        let flush = consumer.flush(5000);
        let id = producer.await_flush();
        assert!(producer.commit(&Proto::new().int(3, id)).success);
        assert!(consumer.peer.reply_to(flush).success);

        // No producer acknowledges the stop: it is immediate.
        assert!(consumer.peer.call("DisableTracing", &Proto::new()).success);
        let end = consumer.peer.reply_to(enabled);
        assert!(end.success && wire::int(&end.body, 1) == 1 && wire::last(&end.body, 3).is_none());
        assert_eq!(wire::int(&producer.await_command(2), 1), wire::int(&start, 1), "it is told to stop");

        let texts = consumer.read_texts();
        assert_eq!(texts.len(), 2);
        assert_eq!(texts[0], (1, "one".to_owned()));
        assert!(texts[1].0 == 2 && texts[1].1.len() == 5000 && texts[1].1.contains("xABCDx"), "whole and patched");
        assert!(consumer.peer.call("FreeBuffers", &Proto::new()).success);

        // UnregisterDataSource by name, the last of its methods.
        assert!(producer.call("UnregisterDataSource", &Proto::new().wide(1, b"old")).success);
        assert!(harness.state().data_sources.is_empty());
        assert!(service.is_running());
        Ok(())
    }
}

/// Android 10 can announce that it acknowledges: then starts and stops are waited for.
mod acknowledgements_are_waited_for_only_if_announced {
    use super::*;

    esatto_tests::for_each_service!(scenario);

    fn scenario(implementation: Implementation) -> Result<(), Skip> {
        let harness = Harness::new();
        let _service = harness.service(implementation);
        for is_announced in [false, true] {
            let mut producer = RawProducer::connect(&harness, "producer");
            let descriptor = Proto::new().bytes(1, "old");
            producer.register(&if is_announced { descriptor.int(2, 1).int(3, 1) } else { descriptor });
            let mut consumer = RawConsumer::connect(&harness);
            // All data sources are started.
            let (observed, frame) = consumer.peer.call_frame("ObserveEvents", &Proto::new().int(1, 2));
            consumer.peer.send(&frame);
            consumer.enable(&config());
            let started = producer.await_start();
            let instance = Proto::new().int(1, started.instance);
            if is_announced {
                // The event does not come before: a later call is answered first.
                assert!(consumer.peer.call("QueryCapabilities", &Proto::new()).success);
                assert!(producer.call("NotifyDataSourceStarted", &instance).success);
            }
            let event = consumer.peer.reply_to(observed);
            assert_eq!(wire::int(wire::last(&event.body, 1).expect("an event"), 2), 1, "all started");

            assert!(consumer.peer.call("DisableTracing", &Proto::new()).success);
            let _ = producer.await_command(2);
            if is_announced {
                let (asked, frame) = consumer.peer.call_frame("QueryCapabilities", &Proto::new());
                consumer.peer.send(&frame);
                assert_eq!(consumer.peer.read().expect("an answer").request_id, asked, "the end waits");
                assert!(producer.call("NotifyDataSourceStopped", &instance).success);
            }
            assert!(consumer.ended().success);
        }
        Ok(())
    }
}

/// The service asks only clients that announced it to clear their state. Others do not know the
/// command.
mod incremental_state_is_cleared_only_if_announced {
    use super::*;

    esatto_tests::for_each_service!(scenario);

    fn scenario(implementation: Implementation) -> Result<(), Skip> {
        let harness = Harness::new();
        let _service = harness.service(implementation);
        let mut old = RawProducer::connect(&harness, "old");
        old.offer("old");
        let mut new = RawProducer::connect(&harness, "new");
        new.register(&Proto::new().bytes(1, "old").int(4, 1));
        let mut consumer = RawConsumer::connect(&harness);
        consumer.enable(&config().message(21, &Proto::new().int(1, 20)));
        let _ = (old.await_start(), new.await_start());
        for _ in 0..3 {
            let _ = new.await_command(7);
        }
        // The old producer gets no such command: its next command is a flush.
        let flush = consumer.flush(0);
        let (number, body) = old.command();
        assert_eq!(number, 5);
        old.acknowledge(wire::int(&body, 2));
        let id = new.await_flush();
        new.acknowledge(id);
        assert!(consumer.peer.reply_to(flush).success);
        Ok(())
    }
}

/// Before v41 no fragment was announced in advance: a chunk may have 1023 packets, and of an open
/// one the last is not taken.
mod chunks_of_old_writers_are_read {
    use super::*;

    esatto_tests::for_each_service!(scenario);

    fn scenario(implementation: Implementation) -> Result<(), Skip> {
        let harness = Harness::new();
        let _service = harness.service(implementation);
        let introduction = Proto::new().int(1, 32768).int(2, 32768 * 4).bytes(3, "old").int(4, 1);
        let mut producer = RawProducer::introduce(Peer::producer(&harness), &introduction, &[]);
        producer.offer("old");
        let mut consumer = RawConsumer::connect(&harness);
        consumer.enable(&config());
        let buffer = producer.await_start().buffer;
        assert!(producer.call("RegisterTraceWriter", &Proto::new().int(1, 1).int(2, buffer)).success);
        let packets: Vec<Vec<u8>> = (0..1026).map(|number| packet(number, "p")).collect();
        let (full, rest) = packets.split_at(1023);
        let slices: Vec<&[u8]> = full.iter().map(Vec::as_slice).collect();
        // A page of 32 KiB, which `put` does not know: header and payload by hand.
        let chunk = old_chunk(0, &slices, 0);
        producer.write(8, &chunk.to_bytes());
        producer.write(0, &ONE_COMPLETE.to_le_bytes());
        assert!(producer.commit(&Proto::new().message(1, &moved(0, 0, buffer))).success);
        let open: Vec<&[u8]> = rest.iter().map(Vec::as_slice).collect();
        producer.write(32768 + 8, &old_chunk(1, &open, 0).to_bytes());
        producer.write(32768, &ONE_BEING_WRITTEN.to_le_bytes());
        let flush = consumer.flush(0);
        let id = producer.await_flush();
        producer.acknowledge(id);
        assert!(consumer.peer.reply_to(flush).success);
        consumer.disable();
        let numbers: Vec<u64> = consumer.read_texts().into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, (0..1025).collect::<Vec<_>>());
        Ok(())
    }
}
