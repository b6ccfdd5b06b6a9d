//! §16, cases 11 to 22: nested messages, and the conditions for short lengths.

use esatto_protozero::{Fields, HeapBuffer, Message, ScatteredWriter};

use crate::chunks::Chunks;

/// The message of case 11.
fn write_case_11(mut root: Message<'_>) {
    root.varint(1, 1);
    root.begin(128).varint(2, 2);
    root.begin(129).varint(4, 2);
    root.varint(5, 3);
    assert_eq!(root.len(), 14);
}

#[test]
fn case_11_short_lengths_take_one_byte() {
    let mut buffer = HeapBuffer::with_capacity(64);
    write_case_11(buffer.message());
    assert_eq!(buffer.as_slice(), b"\x08\x01\x82\x08\x02\x10\x02\x8a\x08\x02\x20\x02\x28\x03");
}

#[test]
fn case_12_lengths_of_four_bytes_mean_the_same() {
    // The bytes of writers that never compact.
    let wide = b"\x08\x01\x82\x08\x82\x80\x80\x00\x10\x02\x8a\x08\x82\x80\x80\x00\x20\x02\x28\x03";
    assert_eq!(wide.len(), 20);
    let mut buffer = HeapBuffer::new();
    write_case_11(buffer.message());
    let fields = |bytes| Fields::new(bytes).map(|field| (field.id, field.value)).collect::<Vec<_>>();
    assert_eq!(fields(wide), fields(buffer.as_slice()));
    // If a message crosses chunks, this writer also writes four bytes.
    let mut writer = ScatteredWriter::new(Chunks::of(9));
    writer.message().begin(128).bytes(1, b"12");
    assert_eq!(writer.into_delegate().stitched(), b"\x82\x08\x84\x80\x80\x00\x0a\x0212");
}

#[test]
fn case_13_a_message_ends_before_its_parent_goes_on_with_raw_bytes() {
    let mut buffer = HeapBuffer::with_capacity(64);
    let mut root = buffer.message();
    root.begin(1).varint(1, 7);
    root.raw(b"\x10\x05");
    drop(root);
    assert_eq!(buffer.as_slice(), b"\x0a\x02\x08\x07\x10\x05");
}

#[test]
fn case_14_a_message_ends_before_its_parent_goes_on_with_scattered_bytes() {
    let mut buffer = HeapBuffer::with_capacity(64);
    let mut root = buffer.message();
    root.begin(1).varint(1, 7);
    root.scattered_bytes(2, &[b"a", b"bc"]);
    drop(root);
    assert_eq!(buffer.as_slice(), b"\x0a\x02\x08\x07\x12\x03abc");
}

#[test]
fn case_15_ten_levels_in_small_chunks() {
    fn level(message: &mut Message<'_>, depth: u32) {
        for id in 1..=256 {
            message.varint(id, u64::from(depth * 1000 + id));
        }
        if depth == 9 {
            return;
        }
        let mut child = message.begin(300 + depth);
        level(&mut child, depth + 1);
        // Half of the levels end here, the others at the end of their scope.
        if depth % 2 == 0 {
            drop(child);
        }
    }
    fn check(bytes: &[u8], depth: u32) {
        let mut fields = Fields::new(bytes);
        for id in 1..=256 {
            let field = fields.next().unwrap();
            assert_eq!((field.id, field.as_u64()), (id, u64::from(depth * 1000 + id)));
        }
        if depth < 9 {
            let child = fields.next().unwrap();
            assert_eq!(child.id, 300 + depth);
            check(child.as_bytes(), depth + 1);
        }
        assert!(fields.next().is_none() && fields.rest().is_empty());
    }
    let mut writer = ScatteredWriter::new(Chunks::of(16));
    level(&mut writer.message(), 0);
    check(&writer.into_delegate().stitched(), 0);
}

fn nest(message: &mut Message<'_>, depth: usize, leaf: u64) {
    if depth > 0 {
        nest(&mut message.begin(1), depth - 1, leaf);
    } else if leaf > 0 {
        message.varint(2, leaf);
    }
}

/// Returns the length of every level.
fn unnest(mut bytes: &[u8], depth: usize) -> (Vec<usize>, &[u8]) {
    let mut lengths = Vec::new();
    for _ in 0..depth {
        let mut fields = Fields::new(bytes);
        bytes = fields.next().expect("a level").as_bytes();
        assert!(fields.rest().is_empty());
        lengths.push(bytes.len());
    }
    (lengths, bytes)
}

#[test]
fn case_16_a_thousand_levels() {
    for size in [16, 4096, 100_000] {
        let mut writer = ScatteredWriter::new(Chunks::of(size));
        nest(&mut writer.message(), 1000, 42);
        assert_eq!(writer.dropped(), 0);
        let bytes = writer.into_delegate().stitched();
        assert_eq!(unnest(&bytes, 1000).1, b"\x10\x2a");
    }
}

#[test]
fn case_17_a_thousand_empty_levels_are_compact_inside() {
    let mut writer = ScatteredWriter::new(Chunks::of(4096));
    nest(&mut writer.message(), 1000, 0);
    let bytes = writer.into_delegate().stitched();
    let (lengths, rest) = unnest(&bytes, 1000);
    assert!(rest.is_empty());
    // Two bytes per level as long as the content of a level is short.
    let inner: Vec<usize> = lengths.iter().rev().take(64).copied().collect();
    assert_eq!(inner, (0..64).map(|level| 2 * level).collect::<Vec<_>>());
    // The first level whose content is long, in which the next one has a tag and a length of four
    // bytes.
    assert_eq!(lengths[1000 - 65], 1 + 1 + 126);
    assert_eq!(lengths[1000 - 66], 1 + 4 + 128);
}

#[test]
fn case_18_content_and_length_in_one_chunk() {
    let mut writer = ScatteredWriter::new(Chunks::of(16));
    let mut root = writer.message();
    let mut message = root.begin(1);
    message.bytes(1, b"12345");
    assert_eq!(message.len(), 7);
    drop(message);
    assert_eq!(root.len(), 1 + 8);
    drop(root);
    assert_eq!(writer.into_delegate().raw, [b"\x0a\x07\x0a\x0512345"]);
}

#[test]
fn case_19_content_that_crosses_has_a_length_of_four_bytes() {
    let mut writer = ScatteredWriter::new(Chunks::of(16));
    let mut root = writer.message();
    let mut message = root.begin(1);
    message.bytes(1, b"0123456789");
    message.bytes(1, b"0123456789");
    assert_eq!(message.len(), 24);
    drop(message);
    assert_eq!(root.len(), 1 + 28);
    drop(root);
    let chunks = writer.into_delegate();
    assert_eq!(chunks.lengths, [(0, 1, Some([0x98, 0x80, 0x80, 0x00]))]);
    assert_eq!(chunks.stitched(), b"\x0a\x98\x80\x80\x00\x0a\x0a0123456789\x0a\x0a0123456789");
}

#[test]
fn case_20_127_bytes_are_short_and_128_are_not() {
    // Twice: when nothing is known about the size, and when the last message was long.
    for _ in 0..2 {
        let mut buffer = HeapBuffer::with_capacity(1000);
        for guess in [0, 300] {
            buffer.message().begin(1).raw(&vec![0; guess]);
            let before = buffer.len();
            buffer.message().begin(1).raw(&[0; 127]);
            assert_eq!(buffer.as_slice()[before..before + 3], [0x0a, 127, 0]);
            assert_eq!(buffer.len(), before + 2 + 127);
            let before = buffer.len();
            buffer.message().begin(1).raw(&[0; 128]);
            assert_eq!(buffer.as_slice()[before..before + 6], [0x0a, 0x80, 0x81, 0x80, 0x00, 0]);
            assert_eq!(buffer.len(), before + 5 + 128);
        }
    }
}

#[test]
fn case_21_a_parent_counts_the_short_length_of_its_child() {
    let mut buffer = HeapBuffer::with_capacity(64);
    let mut root = buffer.message();
    let mut outer = root.begin(1);
    outer.begin(2).varint(3, 3);
    assert_eq!(outer.len(), 4);
    drop(outer);
    assert_eq!(root.len(), 6);
    drop(root);
    assert_eq!(buffer.as_slice(), b"\x0a\x04\x12\x02\x18\x03");
}

/// The documentation of the crate shows the compile errors: a message that ended cannot be written,
/// because it was dropped.
#[test]
fn case_22_a_message_that_ended_is_gone() {
    let mut buffer = HeapBuffer::new();
    let mut root = buffer.message();
    let nested = root.begin(1);
    drop(nested);
    root.varint(2, 2);
    drop(root);
    assert_eq!(buffer.as_slice(), b"\x0a\x00\x10\x02");
}
