//! Small packets have the same bytes as ordinary packets.

use esatto_shm::TraceWriter;

use crate::rig::{Rig, Taken, first_packet, raw_packet};

/// Writes a small packet of `len` bytes, if that is possible.
fn small_packet(writer: &mut TraceWriter, len: usize) -> bool {
    let Some(mut packet) = writer.small_packet(len.min(100)) else { return false };
    packet.word(0x0a, 1);
    let field = packet.open();
    packet.bytes(&vec![0xab; len - 2]);
    packet.close(field);
    packet.finish()
}

fn chunks(write: impl Fn(&mut TraceWriter, usize)) -> Vec<Taken> {
    let rig = Rig::new(1 << 20);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    let mut random = 1_u64;
    for _ in 0..5000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        write(&mut writer, 2 + (random >> 33) as usize % 127);
    }
    writer.flush();
    rig.drain()
}

#[test]
fn small_and_ordinary_packets_have_the_same_bytes() {
    let short = std::cell::Cell::new(0);
    let ordinary = chunks(raw_packet);
    let mixed = chunks(|writer, len| match small_packet(writer, len) {
        true => short.set(short.get() + 1),
        false => raw_packet(writer, len),
    });
    assert!(short.get() > 4500, "{} of 5000 by the short way", short.get());
    assert_eq!(ordinary.len(), mixed.len());
    for (a, b) in ordinary.iter().zip(&mixed) {
        assert_eq!((a.info.count, a.info.flags, a.sizes()), (b.info.count, b.info.flags, b.sizes()));
        assert_eq!(a.fragments(), b.fragments());
    }
}

#[test]
fn the_longest_small_packet_has_126_bytes() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    assert!(small_packet(&mut writer, 126));
    assert!(!small_packet(&mut writer, 127));
    assert!(small_packet(&mut writer, 2));
    writer.flush();
    assert_eq!(rig.drain().remove(0).sizes(), [3, 126, 2, 0]);
}

#[test]
fn marks_of_the_writer_come_first() {
    let rig = Rig::new(4096);
    let mut writer = rig.writer();
    assert!(writer.small_packet(2).is_none(), "the sequence has not begun");
    first_packet(&mut writer);
    assert!(writer.small_packet(2).is_some());
    // Without a chunk, and then with an owed mark of the loss.
    while !writer.is_dropping() {
        raw_packet(&mut writer, 500);
    }
    assert!(writer.small_packet(2).is_none(), "there is no chunk");
    rig.drain();
    raw_packet(&mut writer, 2);
    assert!(!writer.is_dropping());
    assert!(writer.small_packet(2).is_none(), "readers do not know the state of the sequence");
    assert!(writer.has_lost());
    writer.accept_losses();
    raw_packet(&mut writer, 2);
    assert!(!writer.has_lost());
    assert!(writer.small_packet(2).is_some(), "the ordinary packet carried the mark");
}

#[test]
fn an_unfinished_small_packet_leaves_nothing() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    for _ in 0..3 {
        let mut packet = writer.small_packet(2).unwrap();
        packet.word(0x0108, 2);
    }
    assert!(small_packet(&mut writer, 5));
    writer.flush();
    assert_eq!(rig.drain().remove(0).sizes(), [3, 5, 0]);
}

#[test]
fn a_scraper_sees_a_small_packet_as_soon_as_it_is_finished() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    let before = rig.header(0).packets.count();
    let mut packet = writer.small_packet(2).unwrap();
    packet.word(0x0108, 2);
    assert_eq!(rig.header(0).packets.count(), before);
    assert!(packet.finish());
    assert_eq!(rig.header(0).packets.count(), before + 1);
}

#[test]
fn a_chunk_that_is_almost_full_can_be_left() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    assert!(!writer.begin_next_chunk(usize::MAX), "there is none to leave");
    first_packet(&mut writer);
    assert!(!writer.begin_next_chunk(100), "it has room");
    raw_packet(&mut writer, 4000);
    assert!(!small_packet(&mut writer, 80));
    assert!(writer.begin_next_chunk(100));
    assert!(small_packet(&mut writer, 80));
    writer.flush();
    let taken = rig.drain();
    let sizes: Vec<_> = taken.iter().map(Taken::sizes).collect();
    assert_eq!(sizes, [vec![3, 4000, 0], vec![80, 0]]);
    assert!(taken.iter().all(|chunk| chunk.info.flags == esatto_shm::abi::ChunkFlags::NONE), "nothing continues");
}

#[test]
fn leaving_the_last_chunk_is_a_loss_like_any_other() {
    let rig = Rig::new(4096);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    raw_packet(&mut writer, 4000);
    assert!(!writer.begin_next_chunk(100));
    assert!(writer.is_dropping());
    assert_eq!(writer.drop_count(), 1);
}

/// Writes the same packets of head and tail, from words and as ordinary packets.
#[test]
fn packets_of_words_have_the_same_bytes_as_ordinary_packets() {
    let text: Vec<u8> = (1..=23).collect();
    let tail = |from: usize| [word(&text[from..]), word(&text[(from + 8).min(23)..])];
    let write = |writer: &mut TraceWriter, len: usize, by_words: bool| {
        // The head has as many bytes as possible, and the rest of its word is overwritten.
        let head_len = len.min(7);
        let words = || ((word(&text), head_len), (tail(head_len), len - head_len));
        if by_words && writer.small_words(words().0, words().1) {
            return true;
        }
        let mut packet = writer.new_packet();
        packet.message().raw(&text[..len]);
        false
    };
    let chunks = |by_words: bool| {
        let (rig, mut short) = (Rig::new(1 << 20), 0);
        let mut writer = rig.writer();
        first_packet(&mut writer);
        for i in 0..5000 {
            short += usize::from(write(&mut writer, i * 7 % 24, by_words));
        }
        writer.flush();
        (rig.drain(), short)
    };
    let ((ordinary, none), (mixed, short)) = (chunks(false), chunks(true));
    assert_eq!(none, 0);
    assert!(short > 4900, "{short} of 5000 by words");
    assert_eq!(ordinary.len(), mixed.len());
    for (a, b) in ordinary.iter().zip(&mixed) {
        assert_eq!((a.info.count, a.info.flags, a.sizes()), (b.info.count, b.info.flags, b.sizes()));
        assert_eq!(a.fragments(), b.fragments());
    }
}

/// Returns the first eight bytes, or fewer if there are fewer.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

#[test]
fn lengths_beyond_the_words_are_refused() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    assert!(!writer.small_words((1, 1), ([0; 2], 0)), "the sequence has not begun");
    first_packet(&mut writer);
    assert!(!writer.small_words((1, 8), ([0; 2], 0)));
    assert!(!writer.small_words((1, 1), ([0; 2], 17)));
    assert!(writer.small_words((1, 7), ([0; 2], 16)));
    writer.begin_packet();
    assert!(!writer.small_words((1, 1), ([0; 2], 0)), "a packet is being written");
    assert!(writer.small_packet(2).is_none());
    writer.end_packet();
    assert!(writer.small_words((1, 1), ([0; 2], 0)));
    writer.flush();
    assert!(!writer.small_words((1, 1), ([0; 2], 0)), "there is no chunk");
    assert_eq!(rig.drain().remove(0).sizes(), [3, 23, 0, 1, 0]);
}

#[test]
fn a_chunk_takes_1022_small_packets() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    let words = |writer: &mut TraceWriter| writer.small_words((0x0108, 2), ([0; 2], 0));
    for _ in 1..1022 {
        assert!(words(&mut writer));
    }
    assert!(!words(&mut writer));
    assert!(writer.small_packet(2).is_none());
    raw_packet(&mut writer, 2);
    assert!(words(&mut writer), "in the next chunk");
    writer.flush();
    assert_eq!(rig.drain().remove(0).info.count, 1023);
}
