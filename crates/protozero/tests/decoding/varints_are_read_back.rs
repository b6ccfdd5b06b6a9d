use esatto_protozero::wire::{decode_varint, redundant_varint4, unzigzag};

use crate::{hex, only};

#[test]
fn case_2_zigzag_is_undone() {
    for (signed, unsigned) in [
        (0, 0),
        (-1, 1),
        (1, 2),
        (-2, 3),
        (2_147_483_647, 4_294_967_294),
        (-2_147_483_647, 4_294_967_293),
        (i64::from(i32::MIN), u64::from(u32::MAX)),
        (i64::MIN, u64::MAX),
        (9_000_000_000, 18_000_000_000),
        (-9_000_000_000, 17_999_999_999),
        (0x7fff_ffff, 0xffff_fffe),
        (-127, 253),
    ] {
        assert_eq!(unzigzag(unsigned), signed);
    }
    assert_eq!(only(&hex("08 FFFFFFFF0F")).as_sint32(), i32::MIN);
    assert_eq!(only(&hex("08 FFFFFFFFFFFFFFFFFF01")).as_sint64(), i64::MIN);
}

#[test]
fn case_3_shortest_varints_give_back_value_and_end() {
    let sizes = [(0, 1), (1, 1), (0x7f, 1), (0x80, 2), (0xff, 2), (0x3fff, 2), (0x4000, 3), (1 << 21, 4), (1 << 28, 5)];
    let large = [(u64::from(u32::MAX), 5), (1 << 35, 6), (1 << 42, 7), (1 << 49, 8), (1 << 56, 9), (1 << 63, 10)];
    for (value, size) in sizes.into_iter().chain(large).chain([(u64::MAX, 10)]) {
        let mut bytes: Vec<u8> = (0..size).map(|i| (value >> (7 * i)) as u8 | 0x80).collect();
        bytes[size - 1] &= 0x7f;
        assert_eq!(decode_varint(&bytes), Some((value, size)), "{value:#x} at the end of the input");
        bytes.extend([0xff; 20]);
        assert_eq!(decode_varint(&bytes), Some((value, size)), "{value:#x} before something else");
    }
}

#[test]
fn case_4_a_negative_number_is_read_at_every_width() {
    let bytes = hex("08 9CFFFFFFFFFFFFFFFF01");
    assert_eq!((only(&bytes).as_i32(), only(&bytes).as_i64()), (-100, -100));
}

#[test]
fn case_5_redundant_varints_are_read() {
    for value in [0, 1, 0x80, 0x33_2211, 0x0fff_ffff] {
        assert_eq!(decode_varint(&redundant_varint4(value)), Some((u64::from(value), 4)));
        for padding in 0..6 {
            let mut bytes = redundant_varint4(value).to_vec();
            bytes[3] |= 0x80;
            bytes.extend(vec![0x80; padding]);
            bytes.push(0);
            assert_eq!(decode_varint(&bytes), Some((u64::from(value), 5 + padding)), "padded to {}", bytes.len());
        }
    }
}

#[test]
fn case_6_a_varint_that_is_cut_off_is_none() {
    for len in 0..=4 {
        assert_eq!(decode_varint(&[0xff; 4][..len]), None);
    }
    for len in 5..10 {
        assert_eq!(decode_varint(&[0xff; 9][..len.min(9)]), None);
    }
}

#[test]
fn case_7_ten_bytes_are_a_varint_and_eleven_are_not() {
    let mut bytes = [0xff; 10];
    bytes[9] = 1;
    assert_eq!(decode_varint(&bytes), Some((u64::MAX, 10)));
    bytes[9] = 0x7f;
    assert_eq!(decode_varint(&bytes), Some((u64::MAX, 10)), "of the tenth byte one bit counts");
    let mut bytes = [0xff; 11];
    bytes[10] = 1;
    assert_eq!(decode_varint(&bytes), None);
}
