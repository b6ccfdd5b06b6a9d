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

/// Sends everything, with the last marks. Returns the chunks that travelled in messages: sequence,
/// number and content.
fn last_marks(rig: &Rig) -> Vec<(u16, u32, Vec<u8>)> {
    let sent = sent_with_last_marks(rig);
    let moves = sent.iter().filter_map(|call| match call {
        Outgoing::Commit(commit) => Some(&commit.moves),
        _ => None,
    });
    moves
        .flatten()
        .filter_map(|sent| {
            let data = sent.data.as_ref()?;
            let header: [u8; 8] = *data.first_chunk().expect("a header");
            assert_eq!(header[..4], sent.chunk_id.to_ne_bytes());
            assert_eq!(header[4..6], sent.writer_id.to_ne_bytes());
            assert_eq!(header[6..], 1_u16.to_ne_bytes(), "one packet, no flags");
            assert_eq!(sent.target_buffer, 1);
            assert!(sent.chunk > 14 && !sent.incomplete, "no page has such a chunk");
            Some((sent.writer_id, sent.chunk_id, data[8..].to_vec()))
        })
        .collect()
}

fn sent_with_last_marks(rig: &Rig) -> Vec<Outgoing> {
    rig.arbiter.queue_last_marks();
    rig.send_pending();
    std::mem::take(&mut *rig.recorder.outgoing.lock().unwrap())
}

/// A packet with a size.
fn sized(packet: &[&[u8]]) -> Vec<u8> {
    let packet = packet.concat();
    [&[packet.len() as u8][..], &packet].concat()
}

#[test]
fn at_the_end_of_the_process_marks_need_no_memory() {
    let rig = Rig::new(8192);
    let mut ended = rig.writer();
    full(&rig, &mut ended);
    test_packet(&mut ended, 1, "lost");
    let mut new = rig.writer();
    test_packet(&mut new, 1, "lost");
    let ids = [ended.writer_id(), new.writer_id()];
    drop((ended, new));
    let marks = last_marks(&rig);
    assert_eq!(marks, [(ids[0], 2, sized(&[&MARK])), (ids[1], 0, sized(&[&MARK, &FIRST]))]);
    assert_eq!(last_marks(&rig), [], "they are told once");
}

#[test]
fn the_last_marks_come_before_the_ends_of_their_sequences() {
    let rig = Rig::new(8192);
    let mut writers = [rig.writer(), rig.writer()];
    full(&rig, &mut writers[0]);
    for writer in &mut writers {
        test_packet(writer, 1, "lost");
    }
    let ids = writers.each_ref().map(|writer| writer.writer_id());
    drop(writers);
    let mut sent = sent_with_last_marks(&rig);
    sent.extend(sent_with_last_marks(&rig));
    for id in ids {
        let is_mark = |call: &Outgoing| matches!(call, Outgoing::Commit(commit) if commit.moves.iter().any(|sent| sent.data.is_some() && sent.writer_id == id));
        let is_end = |call: &Outgoing| matches!(call, Outgoing::UnregisterWriter { writer_id } if *writer_id == id);
        let place = |is_it: &dyn Fn(&Outgoing) -> bool| sent.iter().position(is_it).expect("it is sent");
        assert!(place(&is_mark) < place(&is_end), "{sent:?}");
        assert_eq!(sent.iter().filter(|call| is_end(call)).count(), 1);
    }
}

#[test]
fn at_the_end_of_the_process_living_writers_share_a_mark() {
    let rig = Rig::new(8192);
    let mut writers = [rig.writer(), rig.writer(), rig.writer()];
    full(&rig, &mut writers[0]);
    for writer in &mut writers {
        test_packet(writer, 1, "lost");
    }
    // One tells its loss itself.
    rig.drain();
    test_packet(&mut writers[0], 2, "found");
    let marks = last_marks(&rig);
    let [(id, 0, content)] = &marks[..] else { panic!("{marks:?}") };
    assert_eq!(*content, sized(&[&MARK, &FIRST]));
    assert!(writers.iter().all(|writer| writer.writer_id() != *id), "a sequence of its own");
    assert_eq!(last_marks(&rig), []);
}

#[test]
fn who_has_lost_nothing_has_no_last_mark() {
    let rig = Rig::new(8192);
    let mut writers = [rig.writer(), rig.writer()];
    full(&rig, &mut writers[0]);
    test_packet(&mut writers[0], 1, "lost");
    rig.drain();
    for writer in &mut writers {
        test_packet(writer, 2, "found");
    }
    assert_eq!(last_marks(&rig), []);
    drop(writers);
    assert_eq!(last_marks(&rig), []);
}
