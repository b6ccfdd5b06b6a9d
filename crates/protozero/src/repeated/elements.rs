//! [`Elements`]: the payload of a packed field that is being written.

use crate::Message;

/// Payload of a packed field, as [`kind`](crate::kind)s use it.
#[doc(hidden)]
#[derive(Debug)]
pub struct Elements<'w>(pub(crate) Message<'w>);

impl Elements<'_> {
    #[inline]
    pub(crate) fn packed_varints(&mut self, value: u64) {
        self.0.raw_varint(value);
    }

    #[inline]
    pub(crate) fn packed_fixed32(&mut self, value: u32) {
        self.0.raw(&value.to_le_bytes());
    }

    #[inline]
    pub(crate) fn packed_fixed64(&mut self, value: u64) {
        self.0.raw(&value.to_le_bytes());
    }
}
