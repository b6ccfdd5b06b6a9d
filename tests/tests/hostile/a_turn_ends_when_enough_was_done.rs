//! A few small calls cause much work. The service does some of it, then it is the turn of other
//! clients.

use esatto_tests::Signal;
use esatto_tests::bystander::watch;
use esatto_tests::raw::{self, ONE_COMPLETE, PAGE_SIZE, RawChunk, RawConsumer, RawProducer, moved, packet};
use esatto_tests::wire::{self, Peer, Proto};

/// The largest shared memory there can be.
const MEMORY: usize = 32 << 20;
const PAGES: usize = MEMORY / PAGE_SIZE;
/// No more than the service handles at a time, even if they are no work.
const CALLS: usize = 64;

fn chunks_written(stats: &[u8]) -> usize {
    usize::try_from(wire::int(wire::last(stats, 1).expect("a buffer"), 2)).expect("a number")
}

#[test]
fn although_all_of_it_was_asked_for_by_few_calls() {
    watch(|harness, service, _| {
        let mut consumer = RawConsumer::connect(harness);
        consumer.enable(&raw::config((2 * MEMORY as u64) >> 10, &["heavy"]));
        let introduction = Proto::new().int(1, PAGE_SIZE as u64).int(2, MEMORY as u64).bytes(3, "heavy");
        let mut producer = RawProducer::introduce(Peer::producer(harness), &introduction, &[]);
        producer.offer("heavy");
        let buffer = producer.await_start().buffer;
        assert_eq!(producer.pages(), PAGES);
        let text = "x".repeat(PAGE_SIZE - 100);
        let mut last = 0;
        let mut frames = Vec::new();
        for (call, pages) in (0..PAGES).collect::<Vec<_>>().chunks(PAGES / CALLS).enumerate() {
            let mut request = Proto::new();
            for &page in pages {
                let chunk_id = u32::try_from(page).expect("few pages");
                producer.put(page, ONE_COMPLETE, &RawChunk::new(1, chunk_id, &[packet(call as u64, &text)]));
                request = request.message(1, &moved(page as u64, 0, buffer));
            }
            let (id, frame) = producer.peer.call_frame("CommitData", &request);
            last = id;
            frames.extend(frame);
        }
        // All is there before the service looks at anything, and the question comes after it.
        service.signal(Signal::STOP);
        producer.peer.send(&frames);
        let (question, frame) = consumer.peer.call_frame("GetTraceStats", &Proto::new());
        consumer.peer.send(&frame);
        service.signal(Signal::CONT);
        let reply = consumer.peer.reply_to(question);
        let written = chunks_written(wire::last(&reply.body, 1).expect("trace_stats"));
        assert!(written < PAGES / 2, "{written} of {PAGES} chunks were copied before the question was answered");
        assert!(producer.peer.reply_to(last).success);
        assert_eq!(chunks_written(&consumer.stats()), PAGES, "and all in the end");
    });
}
