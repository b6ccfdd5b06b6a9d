//! Protobuf by hand, for the little that is said beside the fuzzed bytes.

/// A field with bytes.
pub(crate) fn message(field: u32, bytes: &[u8]) -> Vec<u8> {
    let tag = u64::from(field) << 3 | 2;
    [&varint(tag), &varint(bytes.len() as u64), bytes].concat()
}

/// A varint.
pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}
