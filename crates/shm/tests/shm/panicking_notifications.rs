//! A call of `Notify` that panics costs only the packet being written. No memory that was given
//! away is written, and no half packet is read.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use esatto_shm::{
    Arbiter, ExhaustedPolicy, Fragment, Fragments, Memory, Notify, PrivateRegion, ServiceRegion, TraceWriter,
    abi::{DROP_MARKER_BYTES, PageSize},
};

use crate::rig::{raw_packet, test_packet};

/// Calls that panic if the test wants it.
#[derive(Default)]
struct PanickingNotify {
    when_woken: AtomicBool,
    when_stalled: AtomicBool,
}

fn panic_if_set(panics: &AtomicBool) {
    if panics.load(Ordering::Relaxed) {
        resume_unwind(Box::new("on purpose"));
    }
}

impl Notify for PanickingNotify {
    fn wake(&self) {
        panic_if_set(&self.when_woken);
    }

    fn stall(&self, _: Duration) {
        panic_if_set(&self.when_stalled);
    }
}

/// Four chunks of a page each.
struct FourChunks {
    notify: Arc<PanickingNotify>,
    arbiter: Arc<Arbiter>,
    service: ServiceRegion,
}

impl FourChunks {
    fn new() -> Self {
        let region: Arc<dyn Memory> = Arc::new(PrivateRegion::new(4 * 4096));
        let notify = Arc::new(PanickingNotify::default());
        let arbiter = Arbiter::new(region.clone(), PageSize::DEFAULT, notify.clone()).unwrap();
        let service = ServiceRegion::new(region, PageSize::DEFAULT).unwrap();
        Self { notify, arbiter, service }
    }

    /// Returns true if `f` panics while this call panics.
    fn panics(&self, panics: &AtomicBool, f: impl FnOnce()) -> bool {
        // After this, new chunks wake the connection's thread.
        while self.arbiter.poll_outgoing().is_some() {}
        panics.store(true, Ordering::Relaxed);
        let panicked = catch_unwind(AssertUnwindSafe(f)).is_err();
        panics.store(false, Ordering::Relaxed);
        panicked
    }

    /// Takes the complete chunks of a writer, in the order of their ids: flags, count and payload.
    fn take(&self, writer_id: u16) -> Vec<(u8, Vec<u8>, u16)> {
        let mut taken = Vec::new();
        for page in 0..4 {
            let mut payload = Vec::new();
            if let Ok(info) = self.service.take_chunk(page, 0, &mut payload) {
                if info.writer_id == writer_id {
                    taken.push((info.chunk_id, (info.flags.0, payload, info.count)));
                }
            }
        }
        taken.sort_by_key(|(chunk_id, _)| *chunk_id);
        taken.into_iter().map(|(_, chunk)| chunk).collect()
    }

    /// Frees chunks, as a service does after copying them.
    fn free(&self, others: Vec<TraceWriter>) {
        drop(others);
        for page in 0..4 {
            let _ = self.service.take_chunk(page, 0, &mut Vec::new());
        }
    }

    /// Gives all chunks except `free` to other writers.
    fn occupy(&self, free: usize) -> Vec<TraceWriter> {
        let mut others: Vec<_> = (free..4).map(|_| self.arbiter.create_writer(1, ExhaustedPolicy::Drop)).collect();
        others.iter_mut().for_each(|other| test_packet(other, 1, "other"));
        others
    }
}

#[test]
fn memory_that_was_given_away_is_not_written() {
    let memory = FourChunks::new();
    let mut writer = memory.arbiter.create_writer(1, ExhaustedPolicy::Drop);
    test_packet(&mut writer, 1, "one");
    assert!(memory.panics(&memory.notify.when_woken, || writer.flush()));
    test_packet(&mut writer, 2, "two");
    writer.flush();
    let chunks = memory.take(writer.writer_id());
    assert_eq!(chunks.len(), 2);
    for ((_, payload, _), (mine, other)) in chunks.iter().zip([("one", "two"), ("two", "one")]) {
        let has = |text: &str| payload.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(has(mine) && !has(other));
    }
}

#[test]
fn a_chunk_that_is_full_of_packets_is_not_written_after_it_was_given_away() {
    let memory = FourChunks::new();
    let mut writer = memory.arbiter.create_writer(1, ExhaustedPolicy::Drop);
    test_packet(&mut writer, 1, "one");
    for _ in 0..1021 {
        raw_packet(&mut writer, 2);
    }
    // The chunk has no room for another packet, but has bytes left.
    assert!(memory.panics(&memory.notify.when_woken, || test_packet(&mut writer, 1, "two")));
    test_packet(&mut writer, 1, "three");
    writer.flush();
    let chunks = memory.take(writer.writer_id());
    let has = |payload: &[u8], text: &str| payload.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has(&chunks[0].1, "one") && !has(&chunks[0].1, "three"));
    assert!(has(&chunks.last().unwrap().1, "three"));
}

#[test]
fn a_packet_that_finds_no_second_chunk_is_marked_as_dropped() {
    for goes_on in [false, true] {
        let memory = FourChunks::new();
        let others = memory.occupy(1);
        let mut writer = memory.arbiter.create_writer(1, ExhaustedPolicy::StallThenDrop);
        test_packet(&mut writer, 1, "one");
        let mut packet = writer.new_packet();
        let mut message = packet.message();
        assert!(memory.panics(&memory.notify.when_stalled, || message.begin(900).bytes(1, &[7; 5000])));
        memory.free(others);
        if goes_on {
            message.bytes(1, &[7; 5000]);
        }
        drop(message);
        drop(packet);
        test_packet(&mut writer, 3, "three");
        writer.flush();
        let chunks = memory.take(writer.writer_id());
        let (_, payload, count) = &chunks[0];
        let fragments: Vec<_> = Fragments::new(payload, *count).collect();
        assert!(matches!(fragments[0], Fragment::Data(_)));
        let Fragment::Data(first) = fragments[0] else { panic!("{fragments:?}") };
        let mut second = first.len() + 1;
        assert_eq!(payload[second..second + 4], DROP_MARKER_BYTES);
        second += 4;
        assert_eq!(payload[second], 0xa2, "field 900");
        assert!(chunks.iter().any(|(_, payload, _)| payload.windows(5).any(|window| window == b"three")));
    }
}

#[test]
fn a_packet_that_finds_no_third_chunk_is_marked_as_dropped() {
    for goes_on in [false, true] {
        let memory = FourChunks::new();
        let others = memory.occupy(2);
        let mut writer = memory.arbiter.create_writer(1, ExhaustedPolicy::StallThenDrop);
        let mut packet = writer.new_packet();
        let mut message = packet.message();
        assert!(memory.panics(&memory.notify.when_stalled, || message.begin(900).bytes(1, &[7; 10000])));
        memory.free(others);
        if goes_on {
            message.bytes(1, &[7; 100]);
        }
        drop(message);
        drop(packet);
        assert_eq!(writer.abandoned_count() + writer.drop_count(), 1);
        writer.flush();
        // A loss for want of memory is marked in a chunk of its own behind that.
        let chunks = memory.take(writer.writer_id());
        assert!(chunks.iter().any(|(_, payload, _)| payload[..4] == DROP_MARKER_BYTES));
    }
}

#[test]
fn a_packet_that_is_cut_between_two_chunks_is_marked_as_lost() {
    for goes_on in [false, true] {
        let memory = FourChunks::new();
        let mut writer = memory.arbiter.create_writer(1, ExhaustedPolicy::Drop);
        test_packet(&mut writer, 1, "one");
        let mut packet = writer.new_packet();
        let mut message = packet.message();
        assert!(memory.panics(&memory.notify.when_woken, || message.begin(900).bytes(1, &[7; 5000])));
        if goes_on {
            message.bytes(1, &[7; 5000]);
        }
        drop(message);
        drop(packet);
        assert_eq!(writer.abandoned_count(), 1);
        test_packet(&mut writer, 3, "three");
        writer.flush();
        let chunks = memory.take(writer.writer_id());
        let (_, payload, _) = chunks.last().unwrap();
        // `previous_packet_dropped`: PRESENT, and a writer abort.
        assert_eq!(payload[1..5], [0xd0, 0x02, 0x81, 0x01]);
    }
}
