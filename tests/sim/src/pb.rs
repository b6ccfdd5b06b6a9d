//! A hand-written encoder for the few messages that a seed makes ten thousand times.

/// Bytes of a message under construction.
#[derive(Clone, Debug, Default)]
pub struct Pb(pub Vec<u8>);

impl Pb {
    /// A varint field.
    #[must_use]
    pub fn int(mut self, field: u32, value: u64) -> Self {
        varint(&mut self.0, u64::from(field) << 3);
        varint(&mut self.0, value);
        self
    }

    /// A length-delimited field.
    #[must_use]
    pub fn bytes(mut self, field: u32, value: &[u8]) -> Self {
        varint(&mut self.0, u64::from(field) << 3 | 2);
        varint(&mut self.0, value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }
}

/// Appends a varint.
pub fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The same number in four bytes.
pub fn varint4(value: u32) -> [u8; 4] {
    [value as u8 | 0x80, (value >> 7) as u8 | 0x80, (value >> 14) as u8 | 0x80, (value >> 21) as u8 & 0x7f]
}

/// Takes a varint off the front.
pub fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for i in 0..10 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if i == 9 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
