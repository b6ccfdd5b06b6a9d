//! [`Scratch`]: bytes of a message, in memory that the thread uses again.

use core::cell::Cell;
use core::mem;
use core::ops::Deref;

use esatto_protozero::{EncodeFields, append_to};

use crate::connection::is_kept;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Bytes of one message. Its drop leaves the memory to the next one on this thread, because large
/// memory is expensive to get: the kernel clears it page by page.
#[derive(Debug, Default)]
pub(crate) struct Scratch(Vec<u8>);

impl Scratch {
    /// Encodes a message.
    pub(crate) fn encode(message: &dyn EncodeFields) -> Self {
        let mut bytes = spare();
        append_to(&mut bytes, |mut to| message.write_to(&mut to));
        Self(bytes)
    }

    /// Copies an encoded message.
    #[cfg_attr(not(feature = "channel"), allow(dead_code, reason = "of the channel"))]
    pub(crate) fn copy_of(message: &[u8]) -> Self {
        let mut bytes = spare();
        // The copy may live long: it must not hold much more memory than it needs.
        if bytes.capacity() > message.len().saturating_mul(2) {
            SPARE.set(mem::take(&mut bytes));
        }
        bytes.extend_from_slice(message);
        Self(bytes)
    }
}

impl Deref for Scratch {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let (len, capacity) = (self.0.len(), self.0.capacity());
        if is_kept(len, capacity) {
            let mut bytes = mem::take(&mut self.0);
            bytes.clear();
            // The thread may be about to end.
            let _ = SPARE.try_with(|spare| {
                let other = spare.take();
                spare.set(if other.capacity() > capacity { other } else { bytes });
            });
        }
    }
}

fn spare() -> Vec<u8> {
    SPARE.try_with(Cell::take).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_memory_is_used_again_while_messages_are_large() {
        let large = vec![1; 100_000];
        let first = Scratch::copy_of(&large).as_ptr();
        assert_eq!(Scratch::copy_of(&large).as_ptr(), first);
        // A small copy does not hold it.
        let small = Scratch::copy_of(&[2; 10]);
        assert!(small.0.capacity() < 1000);
        assert_eq!(Scratch::copy_of(&large).as_ptr(), first);
        assert_eq!(*small, [2; 10]);
        drop(Scratch::copy_of(&vec![1; 1_000_000]));
        assert!(spare().capacity() < 1_000_000);
    }
}
