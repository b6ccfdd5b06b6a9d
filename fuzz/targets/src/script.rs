//! Bytes as a script: small numbers and strings of bytes, as long as there are some.

use esatto_protozero::service::Service;

#[derive(Debug)]
pub(crate) struct Script<'a> {
    rest: &'a [u8],
}

impl<'a> Script<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte; 0 at the end.
    pub(crate) fn u8(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// The id of a method that the next byte chooses.
    pub(crate) fn method(&mut self, service: &Service) -> u32 {
        u32::from(self.u8()) % service.methods.len() as u32 + 1
    }

    /// The next two bytes, little-endian.
    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.u8(), self.u8()])
    }

    /// So many bytes as the next two say, or the rest.
    pub(crate) fn string(&mut self) -> &'a [u8] {
        let len = self.u16();
        self.bytes(len.into())
    }

    /// The next `len` bytes, or the rest.
    pub(crate) fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (now, later) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = later;
        now
    }
}
