use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use esatto_shm::{ExhaustedPolicy, Fragment, Options, abi::DROP_MARKER_BYTES};

use crate::rig::{Rig, first_packet, nested_packet, raw_packet, test_packet};

/// Fills both chunks of an 8 KiB region; the second one to the last 4 bytes.
pub(crate) fn full(rig: &Rig, writer: &mut esatto_shm::TraceWriter) {
    first_packet(writer);
    raw_packet(writer, 4068);
    raw_packet(writer, 4072);
    assert!((0..2).all(|p| rig.word(p).0 != 0));
}

#[test]
fn between_packets_a_drop_leaves_no_trace_in_the_chunk() {
    let rig = Rig::new(8192);
    let mut writer = rig.writer();
    full(&rig, &mut writer);
    test_packet(&mut writer, 1, "lost");
    assert!(writer.is_dropping());
    assert_eq!(writer.drop_count(), 1);
    let taken = rig.drain();
    assert_eq!(taken.len(), 2);
    assert_eq!(taken[0].sizes(), [3, 4068, 0]);
    assert_eq!(taken[1].sizes(), [4072, 0]);
    assert!(taken.iter().all(|t| t.info.flags.0 == 0));
}

#[test]
fn inside_a_packet_a_drop_leaves_the_marker() {
    let rig = Rig::new(8192);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    raw_packet(&mut writer, 4068);
    test_packet(&mut writer, 1, "good");
    nested_packet(&mut writer, 2, 90);
    assert_eq!(writer.drop_count(), 1);
    let commits = rig.commits();
    assert!(commits.iter().all(|c| c.patches.is_empty()), "open lengths of the chunk are abandoned");
    let taken = rig.take(1, 0);
    assert_eq!(taken.info.flags.0, 0);
    assert_eq!(taken.info.count, 2);
    assert!(matches!(taken.fragments()[..], [Fragment::Data(_), Fragment::Dropped]));
}

#[test]
fn a_dropped_continuation_is_marked_and_its_earlier_chunk_patched() {
    let rig = Rig::new(8192);
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "good");
    nested_packet(&mut writer, 2, 90);
    let commits = rig.commits();
    let patches: Vec<_> = commits.iter().flat_map(|c| &c.patches).collect();
    assert_eq!(patches.len(), 1);
    assert_eq!(patches[0].patches.len(), 2);
    assert_eq!(rig.header(0).packets.flags().0, 2 | 4);
    let taken = rig.take(1, 0);
    assert_eq!((taken.info.flags.0, taken.info.count), (1, 1));
    assert_eq!(taken.payload[..4], DROP_MARKER_BYTES);
}

#[test]
fn the_first_packet_after_a_loss_is_marked_and_chunk_ids_continue() {
    let rig = Rig::new(8192);
    let mut writer = rig.writer();
    full(&rig, &mut writer);
    for i in 0..10 {
        test_packet(&mut writer, i, "lost");
    }
    rig.drain();
    // Without a flush, with the next packet.
    test_packet(&mut writer, 20, "x");
    test_packet(&mut writer, 21, "y");
    assert!(!writer.is_dropping());
    assert_eq!(writer.drop_count(), 1, "one period");
    writer.flush();
    let taken = rig.drain().remove(0);
    assert_eq!(taken.info.chunk_id, 2);
    let fragments = taken.fragments();
    let Fragment::Data(first) = fragments[0] else { panic!() };
    let Fragment::Data(second) = fragments[1] else { panic!() };
    assert_eq!(first[..6], [0xd0, 0x02, 0x81, 0x02, 0x40, 20]);
    assert_eq!(second[..2], [0x40, 21]);
}

#[test]
fn the_mark_of_a_loss_is_repeated_if_its_packet_is_lost() {
    let rig = Rig::new(8192);
    let mut writer = rig.writer();
    full(&rig, &mut writer);
    test_packet(&mut writer, 1, "lost");
    rig.drain();
    nested_packet(&mut writer, 2, 200);
    rig.drain();
    test_packet(&mut writer, 3, "x");
    writer.flush();
    let taken = rig.drain();
    let Fragment::Data(data) = taken.last().unwrap().fragments()[0] else { panic!() };
    assert_eq!(data[..6], [0xd0, 0x02, 0x81, 0x02, 0x40, 3]);
    assert_eq!(writer.drop_count(), 2);
}

#[test]
fn first_packet_on_sequence_is_on_the_first_that_gets_through() {
    let rig = Rig::new(8192);
    let mut other = rig.writer();
    full(&rig, &mut other);
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "lost");
    other.flush();
    rig.drain();
    test_packet(&mut writer, 2, "x");
    writer.flush();
    let taken = rig.drain().remove(0);
    let Fragment::Data(data) = taken.fragments()[0] else { panic!() };
    assert_eq!(data[..9], [0xd0, 0x02, 0x81, 0x02, 0xb8, 0x05, 0x01, 0x40, 2]);
}

#[test]
fn a_writer_that_stalls_on_the_connection_thread_sends_first() {
    let rig = Rig::new(8192).with_service();
    rig.recorder.on_connection_thread.store(true, Ordering::Relaxed);
    let mut writer = rig.arbiter.create_writer(1, ExhaustedPolicy::StallThenDrop);
    for i in 0..200 {
        raw_packet(&mut writer, 131 + i % 400);
    }
    nested_packet(&mut writer, 1, 300);
    writer.flush();
    rig.send_pending();
    assert_eq!(writer.drop_count(), 0);
    assert_eq!(rig.recorder.stalls.lock().unwrap().len(), 0, "it never had to wait");
    let taken = rig.recorder.taken.lock().unwrap();
    assert!(taken.iter().enumerate().all(|(i, t)| t.info.chunk_id == i as u32));
}

#[test]
fn stalling_waits_longer_and_longer_then_drops_without_waiting() {
    let rig = Rig::new(8192);
    let mut writer = rig.arbiter.create_writer(1, ExhaustedPolicy::StallThenDrop);
    full(&rig, &mut writer);
    test_packet(&mut writer, 1, "lost");
    let stalls = rig.recorder.stalls.lock().unwrap().clone();
    let micros: Vec<_> = stalls[..8].iter().map(Duration::as_micros).collect();
    assert_eq!(micros, [0, 8, 72, 584, 4680, 37448, 100_000, 100_000]);
    assert_eq!(stalls.len(), 299);
    for _ in 0..10 {
        test_packet(&mut writer, 2, "lost");
    }
    assert_eq!(rig.recorder.stalls.lock().unwrap().len(), 299, "no second wait");
    rig.drain();
    test_packet(&mut writer, 3, "x");
    assert!(!writer.is_dropping());
}

/// Returns how long a writer waits for a chunk that does not become free.
fn wait_in_vain(rig: &Rig) -> Duration {
    rig.recorder.stalls.lock().unwrap().clear();
    let mut writer = rig.arbiter.create_writer(1, ExhaustedPolicy::StallThenDrop);
    test_packet(&mut writer, 1, "lost");
    assert_eq!(writer.drop_count(), 1);
    rig.recorder.stalls.lock().unwrap().iter().sum()
}

#[test]
fn a_service_that_frees_nothing_costs_all_writers_30_seconds_together() {
    let rig = Rig::new(8192);
    let mut writer = rig.writer();
    full(&rig, &mut writer);
    let waits: Vec<_> = (0..100).map(|_| wait_in_vain(&rig)).collect();
    assert!(waits[0] > Duration::from_secs(29), "as in the original");
    assert!(waits.iter().sum::<Duration>() <= Duration::from_secs(30));
    assert_eq!(waits.last(), Some(&Duration::ZERO));
    assert_eq!(rig.arbiter.stall_budget(), Duration::ZERO);
}

#[test]
fn each_freed_chunk_adds_a_tenth_of_a_second_to_the_budget() {
    let rig = Rig::new(8192);
    let mut writer = rig.writer();
    full(&rig, &mut writer);
    while !wait_in_vain(&rig).is_zero() {}
    for _ in 0..10 {
        writer.flush();
        assert_eq!(rig.drain().len(), 2);
        full(&rig, &mut writer);
        assert!(wait_in_vain(&rig) <= Duration::from_millis(200), "two chunks");
        assert!(wait_in_vain(&rig) <= Duration::from_millis(200));
        assert!(wait_in_vain(&rig).is_zero());
    }
    // An ordinary service: the whole budget is there again.
    for _ in 0..300 {
        writer.flush();
        assert_eq!(rig.drain().len(), 2);
        full(&rig, &mut writer);
    }
    assert!(wait_in_vain(&rig) > Duration::from_secs(29));
}

#[test]
fn a_new_connection_continues_with_the_rest_of_the_budget() {
    let mut options = Options::default();
    for (left, expected) in [(0, 1), (5, 5), (100, 30)] {
        options.stall_budget = Duration::from_secs(left);
        let rig = Rig::with_options(8192, options);
        let mut writer = rig.writer();
        full(&rig, &mut writer);
        assert_eq!(
            rig.arbiter.stall_budget(),
            Duration::from_secs(expected),
            "chunks that were never used add nothing"
        );
    }
}

#[test]
fn stalling_ends_when_a_chunk_is_free() {
    let rig = Rig::new(8192).with_service();
    let mut writer = rig.arbiter.create_writer(1, ExhaustedPolicy::StallThenDrop);
    full(&rig, &mut writer);
    let recorder = rig.recorder.clone();
    *rig.recorder.while_stalled.lock().unwrap() = Some(Box::new(move || recorder.send_pending()));
    test_packet(&mut writer, 1, "x");
    assert_eq!(rig.recorder.stalls.lock().unwrap().len(), 1);
    assert_eq!(writer.drop_count(), 0);
    *rig.recorder.while_stalled.lock().unwrap() = None;
}

#[test]
fn stalling_ends_with_the_connection() {
    let rig = Rig::new(8192);
    let mut writer = rig.arbiter.create_writer(1, ExhaustedPolicy::StallThenDrop);
    full(&rig, &mut writer);
    let arbiter = rig.arbiter.clone();
    let stalls = AtomicUsize::new(0);
    *rig.recorder.while_stalled.lock().unwrap() = Some(Box::new(move || {
        if stalls.fetch_add(1, Ordering::Relaxed) == 2 {
            arbiter.shutdown();
        }
    }));
    test_packet(&mut writer, 1, "lost");
    assert_eq!(rig.recorder.stalls.lock().unwrap().len(), 3);
    *rig.recorder.while_stalled.lock().unwrap() = None;
}

#[test]
fn dropping_in_a_large_region_finds_a_free_page_anywhere() {
    let rig = Rig::new(4096 * 512);
    let mut hog = rig.writer();
    for _ in 0..512 {
        raw_packet(&mut hog, 4072);
    }
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "lost");
    rig.send_pending();
    rig.take(300, 0);
    for i in 0..8 {
        test_packet(&mut writer, i, "x");
    }
    assert!(!writer.is_dropping(), "64 of 512 pages for each packet");
}

#[test]
fn threads_of_the_services_process_look_often() {
    let mut options = Options::default();
    options.serves_itself = true;
    let rig = Rig::with_options(8192, options);
    let mut writer = rig.arbiter.create_writer(1, ExhaustedPolicy::StallThenDrop);
    full(&rig, &mut writer);
    test_packet(&mut writer, 1, "lost");
    let stalls = rig.recorder.stalls.lock().unwrap();
    assert_eq!(stalls.iter().max(), Some(&Duration::from_millis(4)));
    let total: Duration = stalls.iter().sum();
    assert!((29..31).contains(&total.as_secs()), "{total:?}");
}

#[test]
fn a_thread_that_runs_the_service_never_waits_for_it() {
    let mut options = Options::default();
    options.serves_itself = true;
    let rig = Rig::with_options(8192, options);
    let mut writer = rig.arbiter.create_writer(1, ExhaustedPolicy::StallThenDrop);
    full(&rig, &mut writer);
    rig.recorder.on_connection_thread.store(true, Ordering::Relaxed);
    test_packet(&mut writer, 1, "lost");
    assert_eq!((rig.recorder.stalls.lock().unwrap().len(), writer.drop_count()), (0, 1));
}
