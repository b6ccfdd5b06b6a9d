//! Losses at the end of a sequence are marked, though no packet of the program follows.

use esatto_shm::{Fragment, Outgoing};

use crate::exhaustion::full;
use crate::rig::{Rig, Taken, test_packet};

/// `previous_packet_dropped`: 257.
const MARK: [u8; 4] = [0xd0, 0x02, 0x81, 0x02];
/// `first_packet_on_sequence`.
const FIRST: [u8; 3] = [0xb8, 0x05, 0x01];

fn packets(taken: &Taken) -> Vec<Vec<u8>> {
    let data = |fragment: &Fragment<'_>| match fragment {
        Fragment::Data(data) => data.to_vec(),
        other => panic!("{other:?}"),
    };
    taken.fragments().iter().map(data).filter(|data| !data.is_empty()).collect()
}

#[test]
fn a_flush_marks_a_loss_once() {
    let rig = Rig::new(8192);
    let mut writer = rig.writer();
    full(&rig, &mut writer);
    test_packet(&mut writer, 1, "lost");
    writer.flush();
    assert_eq!(rig.drain().len(), 2, "there was no chunk for the mark");
    for _ in 0..2 {
        writer.flush();
    }
    let taken = rig.drain();
    assert_eq!(taken.len(), 1);
    assert_eq!((taken[0].info.chunk_id, packets(&taken[0])), (2, vec![MARK.to_vec()]));
    assert!(writer.has_lost(), "readers have forgotten the state");
    test_packet(&mut writer, 3, "x");
    writer.flush();
    let taken = rig.drain();
    assert_eq!((taken[0].info.chunk_id, &packets(&taken[0])[0][..2]), (3, &[0x40, 3][..]));
}

#[test]
fn a_flush_marks_a_loss_in_the_chunk_that_there_is() {
    let rig = Rig::new(8192);
    let mut writer = rig.writer();
    let mut other = rig.writer();
    full(&rig, &mut other);
    test_packet(&mut writer, 1, "lost");
    rig.drain();
    // The packet takes the mark; its end is lost again.
    crate::rig::nested_packet(&mut writer, 2, 200);
    rig.drain();
    writer.flush();
    let taken = rig.drain();
    let marks: Vec<_> = taken.iter().flat_map(packets).collect();
    assert_eq!(marks, [[&MARK[..], &FIRST[..]].concat()]);
}

#[test]
fn a_writer_that_ends_without_memory_is_marked_before_it_is_unregistered() {
    let rig = Rig::new(8192);
    let mut writer = rig.writer();
    full(&rig, &mut writer);
    test_packet(&mut writer, 1, "lost");
    let id = writer.writer_id();
    drop(writer);
    let is_end = |call: &Outgoing| matches!(call, Outgoing::UnregisterWriter { writer_id } if *writer_id == id);
    let sent = |rig: &Rig| {
        rig.send_pending();
        std::mem::take(&mut *rig.recorder.outgoing.lock().unwrap())
    };
    assert!(!sent(&rig).iter().any(is_end), "its number is not free yet");
    for page in 0..2 {
        rig.take(page, 0);
    }
    assert_ne!(rig.writer().writer_id(), id);
    let sent = sent(&rig);
    let page = sent.iter().find_map(|call| match call {
        Outgoing::Commit(commit) => Some(commit.moves[0].page),
        _ => None,
    });
    let mark = rig.take(page.unwrap(), 0);
    assert_eq!((mark.info.writer_id, mark.info.chunk_id, packets(&mark)), (id, 2, vec![MARK.to_vec()]));
    assert_eq!(sent.iter().filter(|call| is_end(call)).count(), 1);
}

#[test]
fn the_mark_is_sent_before_a_flush_is_acknowledged() {
    let rig = Rig::new(8192);
    let mut writer = rig.writer();
    full(&rig, &mut writer);
    test_packet(&mut writer, 1, "lost");
    let id = writer.writer_id();
    drop(writer);
    rig.commits();
    for page in 0..2 {
        rig.take(page, 0);
    }
    rig.arbiter.acknowledge_flush(7);
    let commits = rig.commits();
    let flush = commits.iter().position(|commit| commit.flush_request_id == 7).unwrap();
    let sent: Vec<_> = commits[..=flush].iter().flat_map(|commit| &commit.moves).collect();
    assert_eq!(sent.len(), 1, "{commits:?}");
    assert_eq!(rig.take(sent[0].page, 0).info.writer_id, id);
}

#[test]
fn writers_that_end_without_memory_do_not_use_up_all_numbers() {
    let rig = Rig::new(8192);
    let mut other = rig.writer();
    full(&rig, &mut other);
    for _ in 0..40_000 {
        let mut writer = rig.writer();
        assert!(!writer.is_null());
        test_packet(&mut writer, 1, "lost");
        drop(writer);
        rig.send_pending();
    }
}
