//! wire-protocol.md §2 and §22 rows 2 to 5: limits of frames, for any header.

use esatto_ipc::frame::{MAX_FRAME, MAX_PAYLOAD, encode};
use esatto_ipc::{Error, FrameBody, FrameDecoder};

/// Makes a valid frame of exactly `len` bytes, header included.
fn frame_of(len: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut args = len - 24;
    loop {
        out.clear();
        encode::invoke_method(&mut out, 1, 1, 1, &vec![0x7f; args], false).unwrap();
        match len - out.len() {
            0 => return out,
            more => args += more,
        }
    }
}

#[test]
fn a_frame_of_131072_bytes_is_handled() {
    let bytes = frame_of(MAX_FRAME);
    for piece in [1, 4096, MAX_FRAME] {
        let mut decoder = FrameDecoder::new();
        for part in bytes.chunks(piece) {
            assert!(!decoder.has_frame());
            assert_eq!(decoder.push(part), part.len());
        }
        assert!(decoder.has_frame());
        let frame = decoder.next_frame().unwrap().unwrap();
        let FrameBody::InvokeMethod { args, .. } = frame.body else { panic!("{frame:?}") };
        assert!(args.len() > MAX_FRAME - 32 && args.iter().all(|&b| b == 0x7f));
        assert!(decoder.next_frame().unwrap().is_none());
    }
}

#[test]
fn a_header_that_announces_131069_ends_the_stream_at_once() {
    for announced in [MAX_PAYLOAD as u32 + 1, u32::MAX] {
        let mut decoder = FrameDecoder::new();
        let header = announced.to_le_bytes();
        decoder.push(&header[..3]);
        assert!(decoder.next_frame().unwrap().is_none() && !decoder.has_frame());
        decoder.push(&header[3..]);
        assert!(decoder.has_frame(), "an error is something to come back for");
        for _ in 0..2 {
            let error = decoder.next_frame().unwrap_err();
            assert!(matches!(error, Error::FrameTooLarge { announced: a } if a == announced), "{error}");
        }
    }
}

#[test]
fn a_header_that_announces_131068_waits_for_the_rest() {
    let mut decoder = FrameDecoder::new();
    decoder.push(&(MAX_PAYLOAD as u32).to_le_bytes());
    assert!(decoder.next_frame().unwrap().is_none());
}

#[test]
fn frames_before_an_oversized_one_are_handled() {
    let mut stream = frame_of(100);
    stream.extend_from_slice(&[0xff; 8]);
    let mut decoder = FrameDecoder::new();
    decoder.push(&stream);
    assert!(decoder.next_frame().unwrap().is_some());
    assert!(decoder.next_frame().is_err());
}

#[test]
fn empty_frames_are_skipped() {
    let mut stream = vec![0; 4 * 1000];
    stream.extend(frame_of(64));
    let mut decoder = FrameDecoder::new();
    assert_eq!(decoder.push(&stream), stream.len());
    assert!(decoder.next_frame().unwrap().is_some());
    assert_eq!((decoder.skipped(), decoder.consumed()), (1000, 4064));
}

#[test]
fn a_frame_that_is_not_protobuf_is_skipped_and_the_next_one_works() {
    // The payload itself, a member, and a member of a member.
    let broken: [&[u8]; 4] = [
        &[0xff; 5],
        &[0x10, 0x01, 0x2a, 0x7f],
        &[0x10, 0x01, 0x2a, 0x02, 0x08, 0x80],
        &[0x10, 0x01, 0x22, 0x04, 0x1a, 0x02, 0x08, 0x80],
    ];
    for payload in broken {
        let mut stream = (payload.len() as u32).to_le_bytes().to_vec();
        stream.extend_from_slice(payload);
        stream.extend(frame_of(50));
        let mut decoder = FrameDecoder::new();
        decoder.push(&stream);
        assert!(decoder.next_frame().unwrap().is_some(), "{payload:x?}");
        assert_eq!(decoder.skipped(), 1, "{payload:x?}");
    }
}

#[test]
fn lengths_of_four_bytes_are_accepted() {
    // A v15 producer writes the outer length so (wire-protocol.md §19), and the inner one in the
    // same way.
    let mut stream = b"\x18\0\0\0\x10\x01\x1a\x91\x80\x80\x00\x0a\x8c\x80\x80\x00ProducerPort".to_vec();
    let mut decoder = FrameDecoder::new();
    decoder.push(&stream);
    let frame = decoder.next_frame().unwrap().unwrap();
    assert!(matches!(frame.body, FrameBody::BindService { service_name: b"ProducerPort" }), "{frame:?}");
    // With one more byte, it ends beyond its message.
    stream[7] += 1;
    decoder.push(&stream);
    assert!(decoder.next_frame().unwrap().is_none());
    assert_eq!(decoder.skipped(), 1);
}

#[test]
fn unread_bytes_stay_within_one_frame() {
    let mut decoder = FrameDecoder::new();
    let small = frame_of(64);
    let flood = small.repeat(4096);
    let taken = decoder.push(&flood);
    assert_eq!(taken, MAX_FRAME);
    assert_eq!(decoder.push(&flood), 0, "no room until frames are fetched");
    assert!(decoder.spare().is_empty());
    let mut frames = 0;
    while decoder.next_frame().unwrap().is_some() {
        frames += 1;
    }
    assert_eq!(frames, MAX_FRAME / 64);
    assert_eq!(decoder.push(&flood[taken..]), flood.len() - taken);
}

#[test]
fn unknown_fields_and_wrong_wire_types_are_ignored() {
    // request_id as fixed32, invoke_method as varint, field 2047, then a bind.
    let payload = b"\x15\x01\0\0\0\x28\x05\xf8\x7f\x01\x10\x09\x1a\x00";
    let mut stream = (payload.len() as u32).to_le_bytes().to_vec();
    stream.extend_from_slice(payload);
    let mut decoder = FrameDecoder::new();
    decoder.push(&stream);
    let frame = decoder.next_frame().unwrap().unwrap();
    assert_eq!((frame.request_id, frame.body), (9, FrameBody::BindService { service_name: b"" }));
}
