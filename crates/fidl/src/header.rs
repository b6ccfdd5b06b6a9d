//! [`Header`]: the 16 bytes before the body of a message.

use crate::{DecodeError, Reason};

/// Number that all messages of this wire format carry.
const MAGIC: u8 = 1;

/// Bit of the first flags: version 2 of the wire format.
const VERSION_2: u8 = 1 << 1;

/// Bit of the last flags: the receiver may not know the method.
const FLEXIBLE: u8 = 1 << 7;

/// Ordinal of the last message of a server: why it closes the connection.
pub const EPITAPH: u64 = u64::MAX;

/// Header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of the call, by which the response finds it; 0 if there is no response.
    pub txid: u32,
    /// Says if the receiver must know the method.
    pub strictness: Strictness,
    /// The method, the event, or a control message if the highest bit is set.
    pub ordinal: u64,
}

/// Says if the receiver of a message must know its method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// A receiver that does not know the method closes the connection.
    Strict,
    /// A receiver that does not know the method handles that, if its protocol allows.
    Flexible,
}

impl Header {
    /// Bytes of a header.
    pub const SIZE: usize = 16;

    /// Returns the bytes of the header.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&self.txid.to_le_bytes());
        bytes[4] = VERSION_2;
        bytes[6] = if self.strictness == Strictness::Flexible { FLEXIBLE } else { 0 };
        bytes[7] = MAGIC;
        bytes[8..].copy_from_slice(&self.ordinal.to_le_bytes());
        bytes
    }

    /// Reads the header of a message. Flags that this version does not know are ignored.
    ///
    /// # Errors
    ///
    /// The message is shorter than a header, has another wire format, or the ordinal 0.
    pub fn parse(message: &[u8]) -> Result<Self, DecodeError> {
        let Some(bytes) = message.first_chunk::<{ Self::SIZE }>() else {
            return Err(DecodeError::new(Reason::TooFewBytes, message.len()));
        };
        let [t0, t1, t2, t3, flags0, _, flags2, magic, ordinal @ ..] = *bytes;
        if magic != MAGIC {
            return Err(DecodeError::new(Reason::Magic(magic), 7));
        }
        if flags0 & VERSION_2 == 0 {
            return Err(DecodeError::new(Reason::Version, 4));
        }
        let ordinal = u64::from_le_bytes(ordinal);
        if ordinal == 0 {
            return Err(DecodeError::new(Reason::ZeroOrdinal, 8));
        }
        let strictness = if flags2 & FLEXIBLE == 0 { Strictness::Strict } else { Strictness::Flexible };
        Ok(Self { txid: u32::from_le_bytes([t0, t1, t2, t3]), strictness, ordinal })
    }
}
