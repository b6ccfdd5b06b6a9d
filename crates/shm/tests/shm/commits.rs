use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use esatto_protozero::HeapBuffer;
use esatto_shm::{Options, Outgoing};

use crate::rig::{Rig, raw_packet, test_packet};

fn delayed() -> Options {
    let mut options = Options::default();
    options.batch_delay = Duration::from_secs(10);
    options
}

#[test]
fn a_flush_without_callback_wants_no_reply() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "one");
    writer.flush();
    let commit = rig.commit();
    assert!(!commit.wants_reply());
    assert_eq!(commit.moves.len(), 1);
    writer.flush();
    assert!(rig.commits().is_empty(), "nothing to flush, nothing to send");
}

#[test]
fn a_flush_with_callback_wants_a_reply_even_with_nothing_to_send() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    let replies = Arc::new(AtomicUsize::new(0));
    let count = replies.clone();
    writer.flush_with(move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let commit = rig.commit();
    assert!(commit.wants_reply() && commit.moves.is_empty());
    for callback in commit.callbacks {
        callback();
    }
    assert_eq!(replies.load(Ordering::Relaxed), 1);
}

#[test]
fn the_connection_is_woken_once_until_it_polls() {
    let rig = Rig::new(65536);
    let mut writer = rig.writer();
    assert_eq!(rig.recorder.wakes.load(Ordering::Relaxed), 1, "to register the writer");
    rig.send_pending();
    for i in 0..4 {
        test_packet(&mut writer, i, "x");
        writer.flush();
    }
    assert_eq!(rig.recorder.wakes.load(Ordering::Relaxed), 2);
    assert_eq!(rig.commit().moves.len(), 4);
}

#[test]
fn with_a_delay_chunks_wait_unless_half_the_memory_is_pending() {
    let rig = Rig::with_options(8 * 4096, delayed());
    let mut writer = rig.writer();
    rig.send_pending();
    let wakes = rig.recorder.wakes.load(Ordering::Relaxed);
    // Each packet fills a chunk, which is completed when the next one begins.
    for _ in 0..5 {
        raw_packet(&mut writer, 4072);
    }
    let delays = rig.recorder.delays.lock().unwrap().clone();
    assert_eq!(delays, [Duration::from_secs(10)]);
    let pending = 4 * 4088;
    assert!(pending < 4 * 4096);
    assert_eq!(rig.recorder.wakes.load(Ordering::Relaxed), wakes, "four chunks are just under half");
    raw_packet(&mut writer, 4072);
    assert_eq!(rig.recorder.wakes.load(Ordering::Relaxed), wakes + 1);
}

#[test]
fn a_patch_is_urgent() {
    let rig = Rig::with_options(65536, delayed());
    let mut writer = rig.writer();
    rig.send_pending();
    let wakes = rig.recorder.wakes.load(Ordering::Relaxed);
    writer.new_packet().message().begin(1).bytes(1, &[1; 5000]);
    assert_eq!(rig.recorder.wakes.load(Ordering::Relaxed), wakes + 1);
}

#[test]
fn an_acknowledgement_is_sent_with_the_chunks_before_it() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "one");
    writer.flush();
    rig.acknowledge_flush(5);
    let commit = rig.commit();
    assert_eq!((commit.moves.len(), commit.flush_request_id), (1, 5));
    rig.acknowledge_flush(6);
    let commit = rig.commit();
    assert_eq!((commit.moves.len(), commit.flush_request_id), (0, 6));
    rig.send_pending();
    assert!(rig.commits().is_empty());
}

#[test]
fn the_largest_of_queued_acknowledgements_is_sent() {
    let rig = Rig::new(16384);
    // A reservation holds everything back, so that both are in the queue together.
    let _held = rig.arbiter.create_startup_writer(1);
    rig.acknowledge_flush(3);
    rig.acknowledge_flush(2);
    assert!(rig.commits().is_empty());
    rig.arbiter.bind_reservation(1, 4);
    assert_eq!(rig.commit().flush_request_id, 3);
}

#[test]
fn a_writer_is_registered_before_and_unregistered_after_its_chunks() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "one");
    drop(writer);
    rig.send_pending();
    let events = rig.recorder.outgoing.lock().unwrap();
    assert!(
        matches!(&events[..], [
            Outgoing::RegisterWriter { writer_id: 1, target_buffer: 1 },
            Outgoing::Commit(commit),
            Outgoing::UnregisterWriter { writer_id: 1 }
        ] if commit.moves.len() == 1),
        "{events:?}"
    );
}

#[test]
fn requests_encode_as_commit_data() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    writer.new_packet().message().begin(1).bytes(1, &[1; 5000]);
    rig.acknowledge_flush(9);
    let mut buffer = HeapBuffer::new();
    rig.commit().write_to(&mut buffer.message());
    let want: &[u8] = &[
        0x0a, 6, 8, 0, 16, 0, 24, 1, // chunks_to_move { page 0 chunk 0 target_buffer 1 }
        0x12, 16, 8, 1, 16, 1, 24, 0, // chunks_to_patch { 1, 1, 0
        0x22, 8, 8, 8, 0x12, 4, 0x8b, 0xa7, 0x80, 0x00, //   patches { 8, 5003 } }
        24, 9, // flush_request_id
    ];
    assert_eq!(buffer.to_vec(), want);
}
