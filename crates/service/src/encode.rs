//! Encoding of single protobuf fields into a byte vector.

/// Appends a minimal varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// Appends a field with a varint.
pub(crate) fn put(out: &mut Vec<u8>, field: u32, value: u64) {
    put_varint(out, u64::from(field) << 3);
    put_varint(out, value);
}

/// Appends a field that is a message.
pub(crate) fn put_message(out: &mut Vec<u8>, field: u64, message: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, message.len() as u64);
    out.extend_from_slice(message);
}
