//! The packets of honest producers. Each byte follows from the packet's writer and number.

use crate::pb::{take_varint, varint, varint4};

/// `TracePacket.first_packet_on_sequence = true`.
const FIRST_PACKET: [u8; 3] = [0xb8, 0x05, 1];
/// Tag of `TracePacket.for_testing`.
const FOR_TESTING: [u8; 2] = [0xa2, 0x38];
/// Bytes of the nested message before the filler: producer, writer, number.
const HEAD: usize = 10;
/// Bytes of a word of the filler.
const WORD: usize = 8;

/// The identity of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The simulator's number of the producer.
    pub producer: u32,
    /// The writer id.
    pub writer: u16,
    /// Counts from 0.
    pub number: u32,
}

/// A packet, and where the four bytes of its nested length are.
pub fn packet(name: Name, filler: usize, tells_first: bool) -> (Vec<u8>, usize) {
    let mut out = Vec::with_capacity(filler + 32);
    if tells_first && name.number == 0 {
        out.extend_from_slice(&FIRST_PACKET);
    }
    out.extend_from_slice(&FOR_TESTING);
    let length_at = out.len();
    out.extend_from_slice(&varint4((HEAD + filler) as u32));
    out.extend_from_slice(&name.producer.to_le_bytes());
    out.extend_from_slice(&name.writer.to_le_bytes());
    out.extend_from_slice(&name.number.to_le_bytes());
    let head = out.len();
    let mut state = seed(name);
    for _ in 0..filler.div_ceil(WORD) {
        out.extend_from_slice(&next(&mut state));
    }
    out.truncate(head + filler);
    (out, length_at)
}

/// Returns the identity of a packet, if the packet is whole.
///
/// # Errors
///
/// A description of the first wrong byte or field.
pub fn check(mut bytes: &[u8]) -> Result<Name, String> {
    bytes = bytes.strip_prefix(&FIRST_PACKET).unwrap_or(bytes);
    bytes = bytes.strip_prefix(&FOR_TESTING).ok_or("it does not begin like one")?;
    let length = take_varint(&mut bytes).ok_or("its length is cut")?;
    if length != bytes.len() as u64 {
        return Err(format!("it is {} bytes long and says {length}", bytes.len()));
    }
    let (head, filler) = bytes.split_first_chunk::<HEAD>().ok_or("it is too short")?;
    let [p0, p1, p2, p3, w0, w1, n0, n1, n2, n3] = *head;
    let name = Name {
        producer: u32::from_le_bytes([p0, p1, p2, p3]),
        writer: u16::from_le_bytes([w0, w1]),
        number: u32::from_le_bytes([n0, n1, n2, n3]),
    };
    let mut state = seed(name);
    match filler.chunks(WORD).position(|chunk| *chunk != next(&mut state)[..chunk.len()]) {
        Some(at) => Err(format!("{name:?} differs behind {} of {}", at * WORD, filler.len())),
        None => Ok(name),
    }
}

fn seed(name: Name) -> u64 {
    u64::from(name.producer) << 48 ^ u64::from(name.writer) << 32 ^ u64::from(name.number)
}

/// Appends the next bytes of the filler: an additive sequence, mixed so that no two packets share a
/// word and no packet can be compressed.
fn next(state: &mut u64) -> [u8; WORD] {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 29).to_le_bytes()
}

/// The fields that the service appends (`docs/spec/trace-buffer.md §13`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trailer {
    /// Trusted uid.
    pub uid: i32,
    /// Packet sequence.
    pub sequence: u32,
    /// Trusted pid.
    pub pid: Option<i32>,
    /// 0 is the host.
    pub machine: u32,
    /// Loss bits.
    pub loss: u32,
}

impl Trailer {
    /// Reads the fields that follow a packet's own bytes.
    pub fn parse(mut bytes: &[u8]) -> Option<Self> {
        let mut trailer = Self::default();
        while !bytes.is_empty() {
            let tag = take_varint(&mut bytes)?;
            let value = take_varint(&mut bytes)?;
            match tag {
                0x18 => trailer.uid = value as i32,
                0x50 => trailer.sequence = value as u32,
                0x278 => trailer.pid = Some(value as i32),
                0x310 => trailer.machine = value as u32,
                0x150 => trailer.loss = value as u32,
                _ => return None,
            }
        }
        Some(trailer)
    }

    /// Encodes the fields as the service must write them.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |tag: u64, value: u64| {
            varint(&mut out, tag);
            varint(&mut out, value);
        };
        put(0x18, i64::from(self.uid) as u64);
        put(0x50, self.sequence.into());
        if let Some(pid) = self.pid {
            put(0x278, i64::from(pid) as u64);
        }
        if self.machine != 0 {
            put(0x310, self.machine.into());
        }
        if self.loss != 0 {
            put(0x150, self.loss.into());
        }
        out
    }
}

/// Returns the loss that a hostile producer's packet reports itself, and whether it calls itself
/// the first of its sequence. Returns `None` if the packet must not leave the buffer.
pub fn validate(mut bytes: &[u8]) -> Option<(u32, bool)> {
    const RESERVED: [u32; 12] = [3, 10, 33, 35, 36, 50, 69, 79, 98, 124, 125, 133];
    let (mut loss, mut tells_first) = (0, false);
    while !bytes.is_empty() {
        let tag = take_varint(&mut bytes)?;
        let field = (tag >> 3) as u32;
        if field == 0 || RESERVED.contains(&field) {
            return None;
        }
        let skip = match tag & 7 {
            0 => {
                let value = take_varint(&mut bytes)?;
                if field == 42 {
                    loss = value as u32;
                }
                tells_first |= field == 87;
                0
            }
            1 => 8,
            2 => take_varint(&mut bytes).filter(|&length| length < 1 << 28)? as usize,
            5 => 4,
            _ => return None,
        };
        bytes = bytes.get(skip..)?;
    }
    Some((loss, tells_first))
}
