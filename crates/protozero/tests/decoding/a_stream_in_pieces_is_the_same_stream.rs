use esatto_protozero::framing::{FrameReader, FramingError, MAX_FRAME_SIZE};
use proptest::prelude::*;

use crate::hex;

/// Feeds pieces and returns the messages with their field numbers.
fn read<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> (Vec<(u32, Vec<u8>)>, FrameReader) {
    let mut reader = FrameReader::new();
    let mut messages = Vec::new();
    for piece in pieces {
        let mut frames = reader.feed(piece);
        while let Ok(Some(frame)) = frames.next_frame() {
            messages.push((frame.id, frame.bytes.to_vec()));
        }
    }
    (messages, reader)
}

fn stream(messages: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut buffer = esatto_protozero::HeapBuffer::new();
    let mut root = buffer.message();
    messages.iter().for_each(|(id, bytes)| root.bytes(*id, bytes));
    drop(root);
    buffer.to_vec()
}

proptest! {
    #[test]
    fn case_78_random_slices_give_the_same_messages(
        messages in prop::collection::vec((1..1u32 << 29, prop::collection::vec(any::<u8>(), 0..300)), 0..20),
        cuts in prop::collection::vec(0..=4000usize, 0..30),
    ) {
        let stream = stream(&messages);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]);
        let (read, reader) = read(pieces);
        prop_assert_eq!(read, messages);
        prop_assert_eq!((reader.unread(), reader.error()), (0, None));
    }
}

#[test]
fn case_78_bytes_one_by_one() {
    let messages = [(1, b"one".to_vec()), (1, vec![]), (70_000, vec![b'x'; 200])];
    assert_eq!(read(stream(&messages).chunks(1)).0, messages);
}

#[test]
fn case_78_another_tag_is_a_permanent_error() {
    for (digits, tag) in [("0801", 8), ("0D01020304", 13), ("0900", 9), ("0B", 11), ("0200", 2), ("0E", 14)] {
        let bytes = [hex("0A0178"), hex(digits)].concat();
        let (messages, mut reader) = read([&bytes[..]]);
        assert_eq!(messages, [(1, b"x".to_vec())], "what stands before is delivered");
        let error = FramingError::Tag { offset: 3, tag };
        assert_eq!(reader.error(), Some(error), "{digits}");
        assert_eq!(reader.feed(b"\x0a\x01y").next_frame(), Err(error), "there is no way back");
        assert_eq!(reader.unread(), 0, "and nothing is kept");
    }
    assert!(matches!(read([&[0xff; 10][..]]).1.error(), Some(FramingError::Varint { offset: 0 })));
    assert!(matches!(read([&b"\x0a"[..], &[0xff; 10]]).1.error(), Some(FramingError::Varint { offset: 0 })));
}

#[test]
fn case_78_a_message_may_have_64_mib_and_no_more() {
    let mut stream = hex("0A 80808020");
    stream.resize(stream.len() + MAX_FRAME_SIZE, b'x');
    // Two pieces, so that it goes through the buffer.
    let (head, tail) = stream.split_at(1000);
    let mut reader = FrameReader::new();
    assert_eq!(reader.feed(head).next_frame(), Ok(None));
    let mut frames = reader.feed(tail);
    assert_eq!(frames.next_frame().unwrap().unwrap().bytes.len(), MAX_FRAME_SIZE);
    assert_eq!(frames.next_frame(), Ok(None));

    let (messages, reader) = read([&b"\x12\x00\x0a"[..], &hex("81808020")]);
    assert_eq!(messages.len(), 1);
    let error = FramingError::TooLong { offset: 2, len: MAX_FRAME_SIZE as u64 + 1, max: MAX_FRAME_SIZE };
    assert_eq!(reader.error(), Some(error));
    assert_eq!(error.to_string(), "a message of 67108865 bytes at byte 2 of the stream; at most 67108864 are taken");
}

#[test]
fn whole_messages_are_not_copied() {
    let piece = hex("0A0178 120179 0A05");
    let mut reader = FrameReader::new();
    let mut frames = reader.feed(&piece);
    assert_eq!(frames.next_frame().unwrap().unwrap().bytes.as_ptr(), piece[2..].as_ptr());
    assert_eq!(frames.next_frame().unwrap().unwrap().bytes.as_ptr(), piece[5..].as_ptr());
    assert_eq!(frames.next_frame(), Ok(None));
    drop(frames);
    assert_eq!(reader.unread(), 2);
}

#[test]
fn unread_messages_are_kept_within_bounds() {
    let messages: Vec<_> = (1..100).map(|id| (id, vec![b'.'; id as usize])).collect();
    let stream = stream(&messages);
    let mut reader = FrameReader::with_max(1 << 16);
    stream.chunks(100).for_each(|piece| drop(reader.feed(piece)));
    assert_eq!(reader.unread(), stream.len());
    let mut frames = reader.feed(&[]);
    for (id, bytes) in &messages {
        let frame = frames.next_frame().unwrap().unwrap();
        assert_eq!((frame.id, frame.bytes), (*id, &bytes[..]));
    }
    assert_eq!(frames.next_frame(), Ok(None));
    drop(frames);

    let piece = [0; 1 << 16];
    drop(reader.feed(&piece));
    drop(reader.feed(&piece));
    assert_eq!(reader.unread(), 2 << 16);
    drop(reader.feed(b"."));
    let offset = stream.len() as u64;
    assert_eq!(reader.feed(b"").next_frame(), Err(FramingError::Unread { offset, len: (2 << 16) + 1 }));
}

#[test]
fn nothing_is_allocated_for_announced_lengths() {
    let mut reader = FrameReader::new();
    drop(reader.feed(&hex("0A 80808020")));
    let Ok(None) = reader.feed(&[0; 100]).next_frame() else { panic!("the rest of 64 MiB is missing") };
    assert_eq!(reader.unread(), 105);
    assert!(format!("{reader:?}").len() < 2000, "a few bytes are kept");
}
