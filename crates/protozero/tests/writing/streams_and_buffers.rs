//! §16, cases 31 to 37: the content of buffers.

use core::mem::MaybeUninit;

use esatto_protozero::{
    BufferFull, HeapBuffer, ScatteredBuffer, ScatteredWriter, SliceBuffer, StaticBuffer, append_to, encode_into,
};

use crate::chunks::Chunks;

#[test]
fn case_31_writes_of_any_size_fill_chunks_of_8() {
    let mut writer = ScatteredWriter::new(Chunks::of(8));
    let mut message = writer.message();
    let mut expected = Vec::new();
    for piece in [&b"a"[..], b"bcd", b"efghijklm", b"n", b"", b"opqrstuvwxyz0123456789", b"ABC", b"D"] {
        message.raw(piece);
        expected.extend_from_slice(piece);
        assert_eq!(message.len(), expected.len());
    }
    drop(message);
    let chunks = writer.into_delegate();
    assert_eq!(chunks.raw, expected.chunks(8).map(<[u8]>::to_vec).collect::<Vec<_>>());
}

#[test]
fn case_32_a_reservation_is_contiguous() {
    let mut writer = ScatteredWriter::new(Chunks::of(8));
    let mut root = writer.message();
    root.raw(b"123456");
    // The tag is the seventh byte, so the length does not fit after it.
    let mut nested = root.begin(1);
    nested.raw(b"abcdef");
    drop(nested);
    drop(root);
    let chunks = writer.into_delegate();
    assert_eq!(chunks.filled.iter().map(|filled| filled.used).collect::<Vec<_>>(), [7, 8, 2]);
    assert_eq!(chunks.lengths, [(1, 0, Some([0x86, 0x80, 0x80, 0x00]))]);
    assert_eq!(chunks.stitched(), b"123456\x0a\x86\x80\x80\x00abcdef");
}

#[test]
fn case_33_taking_a_length_back_moves_the_content() {
    let mut buffer = HeapBuffer::with_capacity(1000);
    // After a long message, the next one begins with four bytes for its length. All sizes, because
    // content moves in blocks.
    for size in 0..=127 {
        buffer.clear();
        buffer.message().begin(1).raw(&[0; 200]);
        let before = buffer.len();
        let content: Vec<u8> = (0..size).map(|i| b'A' + (i % 64)).collect();
        let mut root = buffer.message();
        root.begin(1).raw(&content);
        assert_eq!(root.len(), 2 + content.len());
        drop(root);
        assert_eq!(buffer.as_slice()[before..before + 2], [0x0a, size]);
        assert_eq!(buffer.as_slice()[before + 2..], content);
    }
    // At the very end of the memory.
    let mut memory = [0; 208 + 5 + 10];
    let mut buffer = SliceBuffer::new(&mut memory);
    buffer.message().begin(1).raw(&[0; 203]);
    buffer.message().begin(1).raw(b"0123456789");
    assert_eq!(buffer.as_slice()[208..], *b"\x0a\x0a0123456789");
}

#[test]
fn case_34_a_buffer_of_fixed_size_takes_its_size_and_no_more() {
    let mut buffer = StaticBuffer::<10>::new();
    buffer.message().raw(b"0123456789");
    assert_eq!((buffer.as_slice(), buffer.dropped()), (&b"0123456789"[..], 0));
    buffer.clear();
    // The original aborts the process.
    buffer.message().raw(b"0123456789a");
    assert_eq!((buffer.as_slice(), buffer.dropped()), (&b""[..], 1));

    let mut memory = [MaybeUninit::uninit(); 10];
    assert_eq!(encode_into(&mut memory, |mut m| m.raw(b"0123456789")), Ok(&mut b"0123456789".to_owned()[..]));
    assert_eq!(encode_into(&mut memory, |mut m| m.raw(b"0123456789a")), Err(BufferFull));
}

#[test]
fn case_35_slices_are_stitched_without_gaps() {
    let mut buffer = ScatteredBuffer::with_slices(16, 32);
    let mut expected = Vec::new();
    for round in 0..50_u8 {
        let payload = vec![round; usize::from(round)];
        buffer.message().bytes(1, &payload);
        append_to(&mut expected, |mut m| m.bytes(1, &payload));
        if round % 2 == 0 {
            // Unused tails in the middle: the length does not fit after the tag, or the content was
            // read.
            buffer.message().begin(2).begin(3);
            expected.extend_from_slice(b"\x12\x02\x1a\x00");
        }
        if round % 16 == 0 {
            assert!(buffer.slices().all(|slice| slice.len() <= 32));
        }
    }
    let found = buffer.to_vec();
    let fields =
        |bytes| esatto_protozero::Fields::new(bytes).map(|field| field.as_bytes().to_vec()).collect::<Vec<_>>();
    for (found, expected) in fields(&found).iter().zip(&fields(&expected)) {
        // Lengths of empty messages may take four bytes if the messages crossed slices.
        assert!(found == expected || found == b"\x1a\x80\x80\x80\x00", "{found:?}");
    }
    assert_eq!(fields(&found).len(), fields(&expected).len());
    assert_eq!(buffer.slices().map(<[u8]>::len).sum::<usize>(), found.len());
}

#[test]
fn case_36_a_buffer_that_is_reused_keeps_its_first_slice() {
    let mut buffer = ScatteredBuffer::with_slices(64, 1024);
    buffer.message().raw(&[1; 500]);
    let first = buffer.slices().next().unwrap().as_ptr();
    buffer.clear();
    assert_eq!(buffer.to_vec(), b"");
    buffer.message().varint(1, 5);
    assert_eq!(
        buffer.slices().map(|slice| (slice.as_ptr(), slice.to_vec())).collect::<Vec<_>>(),
        [(first, vec![8, 5])]
    );

    let mut buffer = HeapBuffer::new();
    buffer.message().raw(&[1; 500]);
    let first = buffer.as_slice().as_ptr();
    buffer.clear();
    buffer.message().varint(1, 5);
    assert_eq!((buffer.as_slice(), buffer.as_slice().as_ptr()), (&[8, 5][..], first));
}

#[test]
fn case_37_an_untouched_message_is_empty() {
    let mut heap = HeapBuffer::new();
    drop(heap.message());
    assert_eq!(heap.as_slice(), b"");
    assert!(heap.message().is_empty());
    let mut scattered = ScatteredBuffer::new();
    drop(scattered.message());
    assert_eq!(scattered.to_vec(), b"");
    let mut fixed = StaticBuffer::<8>::new();
    drop(fixed.message());
    assert_eq!(fixed.as_slice(), b"");
}
