//! The encoder, the decoder, and their helpers: `pb_utils`, `pb_msg`, `stream_writer`,
//! `heap_buffer`, `pb_decoder`.

use perfetto_sdk::fnv1a;
use perfetto_sdk::heap_buffer::HeapBuffer;
use perfetto_sdk::pb_decoder::{PbDecoder, PbDecoderError, PbDecoderField};
use perfetto_sdk::pb_msg::{PbMsg, PbMsgError, PbMsgWriter};
use perfetto_sdk::pb_utils::*;
use perfetto_sdk::stream_writer::StreamWriter;

use crate::session::encode;

pub fn everything() {
    helpers();
    messages();
    large_messages();
    stream_writers();
    decoder();
}

fn helpers() {
    assert_eq!(fnv1a(b"mytrack"), 0x8182_0cb4_e204_bfb2);
    for (number, kind) in [PbWireType::Varint, PbWireType::Fixed64, PbWireType::Delimited].into_iter().enumerate() {
        assert_eq!(pb_make_tag(1, kind), 8 | number as u32);
    }
    assert_eq!(pb_make_tag(3, PbWireType::Fixed32), 3 << 3 | 5);
    assert!(PbWireType::try_from(3_u32).is_err() && matches!(PbWireType::try_from(5_u32), Ok(PbWireType::Fixed32)));
    for value in [0, 1, 127, 128, u64::from(u32::MAX), u64::MAX] {
        let mut bytes = [0; PB_VARINT_MAX_SIZE_64];
        let len = pb_write_varint(value, &mut bytes);
        assert_eq!(pb_parse_varint(&bytes[..len]), (value, len));
        assert!(value > u64::from(u32::MAX) || len <= PB_VARINT_MAX_SIZE_32);
    }
    let mut bytes = [0; 8];
    assert_eq!((pb_write_fixed32(0x0403_0201, &mut bytes), bytes[..4].to_vec()), (4, vec![1, 2, 3, 4]));
    assert_eq!((pb_write_fixed64(0x0807_0605_0403_0201, &mut bytes), bytes), (8, [1, 2, 3, 4, 5, 6, 7, 8]));
    for value in [0, -1, 1, i32::MIN, i32::MAX] {
        assert_eq!(pb_zigzag_decode32(pb_zigzag_encode32(value)), value);
        assert_eq!(pb_zigzag_decode64(pb_zigzag_encode64(i64::from(value) << 32)), i64::from(value) << 32);
    }
    assert_eq!((pb_zigzag_encode32(-1), pb_zigzag_encode64(-2)), (1, 3));
    assert_eq!(pb_parse_packed_varints(&[1, 0x80, 2, 3]), [1, 256, 3]);
    assert_eq!((pb_float_to_fixed32(1.0), pb_double_to_fixed64(1.0)), (0x3f80_0000, 0x3ff0_0000_0000_0000));
}

fn messages() {
    let bytes = encode(|msg| {
        msg.append_byte(8);
        msg.append_varint(300);
        msg.append_bytes(&[0x15]);
        msg.append_fixed32(7);
        msg.append_byte(0x19);
        msg.append_fixed64(8);
        msg.append_type0_field(4, u64::MAX);
        msg.append_type2_field(5, b"data");
        msg.append_fixed32_field(6, 9);
        msg.append_float_field(7, 1.5);
        msg.append_fixed64_field(8, 10);
        msg.append_double_field(9, -2.5);
        msg.append_cstr_field(10, "text");
        msg.append_nested(11, |nested| {
            nested.append_type0_field(1, 1);
            nested.append_nested(2, |_| ());
        });
    });
    let fields: Vec<_> = PbDecoder::new(&bytes).map(|field| field.expect("it is well formed")).collect();
    let expected = [
        (1, PbDecoderField::Varint(300)),
        (2, PbDecoderField::Fixed32(7)),
        (3, PbDecoderField::Fixed64(8)),
        (4, PbDecoderField::Varint(u64::MAX)),
        (5, PbDecoderField::Delimited(b"data")),
        (6, PbDecoderField::Fixed32(9)),
        (7, PbDecoderField::Fixed32(1.5_f32.to_bits())),
        (8, PbDecoderField::Fixed64(10)),
        (9, PbDecoderField::Fixed64((-2.5_f64).to_bits())),
        (10, PbDecoderField::Delimited(b"text")),
        // Lengths have four bytes.
        (11, PbDecoderField::Delimited(b"\x08\x01\x12\x80\x80\x80\0")),
    ];
    assert_eq!(fields, expected);
}

/// Messages in several slices.
fn large_messages() {
    let text = "x".repeat(3000);
    let bytes = encode(|msg| {
        (1..20).for_each(|_| {
            msg.append_nested(1, |outer| {
                outer.append_nested(2, |inner| inner.append_cstr_field(3, &text));
                outer.append_type0_field(4, 5);
            });
        });
    });
    let mut count = 0;
    for field in PbDecoder::new(&bytes) {
        let Ok((1, PbDecoderField::Delimited(outer))) = field else { panic!("{field:?}") };
        let fields: Vec<_> = PbDecoder::new(outer).collect();
        let [Ok((2, PbDecoderField::Delimited(inner))), Ok((4, PbDecoderField::Varint(5)))] = fields[..] else {
            panic!("{fields:?}")
        };
        let inner: Vec<_> = PbDecoder::new(inner).collect();
        assert_eq!(inner, [Ok((3, PbDecoderField::Delimited(text.as_bytes())))]);
        count += 1;
    }
    assert_eq!(count, 19);
}

fn stream_writers() {
    let writer = StreamWriter::new();
    assert_eq!((writer.available_bytes(), writer.get_written_size()), (0, 0));
    let heap = HeapBuffer::new(&writer);
    writer.append_bytes(&[1]);
    // The crate borrows its writer twice here, so it always panics before it calls the library.
    let byte = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| writer.append_byte(1)));
    assert!(byte.is_err(), "it has been mended: this can go");
    assert!(writer.available_bytes() > 100);
    writer.append_bytes(&[2, 3]);
    writer.append_bytes_unchecked(&[4]);
    writer.reserve_bytes(2).copy_from_slice(&[5, 6]);
    writer.reserve_bytes_unchecked(1)[0] = 7;
    writer.append_bytes(&[8; 10_000]);
    writer.reserve_bytes(100).fill(9);
    assert_eq!(writer.get_written_size(), 7 + 10_000 + 100);
    let mut copy = vec![0; 20_000];
    heap.copy_into(&mut copy);
    assert_eq!(copy[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(copy[7..10_007].iter().all(|byte| *byte == 8) && copy[10_007..10_107].iter().all(|byte| *byte == 9));
    assert!(copy[10_107..].iter().all(|byte| *byte == 0));
    let mut part = [0; 3];
    heap.copy_into(&mut part);
    assert_eq!(part, [1, 2, 3]);

    let nowhere = PbMsgWriter::new();
    assert_eq!(PbMsg::new(&nowhere).err(), Some(PbMsgError::MissingOutputForWriter));
}

fn decoder() {
    assert_eq!(PbDecoder::new(&[]).count(), 0);
    let field = PbDecoder::new(&[0x0b, 1]).next();
    assert!(!matches!(field, Some(Ok(_))), "{field:?}");
    assert_eq!(PbDecoderError::InvalidWireType(3).to_string(), "Invalid wire type: 3.");
}
