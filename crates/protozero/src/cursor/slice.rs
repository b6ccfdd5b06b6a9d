//! A sink of fixed size.

use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::cursor::{OpenSlots, Range, RawDelegate, Slot, Stream};
use crate::message::Message;

/// The message did not fit into the memory given to [`encode_into`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferFull;

impl fmt::Display for BufferFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the message does not fit into the buffer")
    }
}

impl core::error::Error for BufferFull {}

/// Writes one message into memory that the caller brings, and returns its bytes. Does not allocate.
///
/// ```
/// let mut memory = [const { core::mem::MaybeUninit::uninit() }; 16];
/// let written = esatto_protozero::encode_into(&mut memory, |message| message.varint(1, 300)).unwrap();
/// assert_eq!(written, b"\x08\xac\x02");
/// ```
///
/// # Errors
///
/// If the message does not fit or leaked a nested message.
pub fn encode_into(
    memory: &mut [MaybeUninit<u8>],
    write: impl FnOnce(&mut Message<'_>),
) -> Result<&mut [u8], BufferFull> {
    let len = memory.len();
    let begin = NonNull::from(&mut *memory).cast::<u8>();
    let mut sink = Overflow { happened: false, scratch: [const { MaybeUninit::uninit() }; SCRATCH_SIZE] };
    let delegate = NonNull::from(&mut sink);
    // SAFETY: `sink` outlives the stream and is accessed only by it while it exists.
    let mut stream = unsafe { Stream::new(delegate) };
    // SAFETY: `memory` is borrowed for the whole call and used by nobody else.
    unsafe { stream.reset(Range { begin, len }) };
    write(&mut stream.root());
    let (written, poisoned) = (stream.position(), stream.is_poisoned());
    // SAFETY: the stream is not used any more.
    if poisoned || unsafe { delegate.as_ref() }.happened {
        return Err(BufferFull);
    }
    // SAFETY: without overflow the stream initialised all `written` bytes from `begin` on, and filled in every length, as no
    // guard was leaked.
    Ok(unsafe { core::slice::from_raw_parts_mut(begin.as_ptr(), written) })
}

/// Takes what does not fit.
struct Overflow {
    happened: bool,
    scratch: [MaybeUninit<u8>; SCRATCH_SIZE],
}

const SCRATCH_SIZE: usize = 64;

// SAFETY: hands out its own scratch area, over and over, and abandons all slots when it does.
unsafe impl RawDelegate for Overflow {
    fn next_range(&mut self, _used: usize, mut open: OpenSlots<'_>, _min_len: usize) -> Range {
        self.happened = true;
        open.redirect(|_| Slot::Abandoned);
        Range { begin: NonNull::from(&mut self.scratch).cast(), len: SCRATCH_SIZE }
    }

    fn fill_patch(&mut self, _patch: u32, _value: [u8; 4]) {
        unreachable!("no slot is ever redirected to a patch");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_does_not_fit_is_an_error() {
        let mut memory = [const { MaybeUninit::uninit() }; 8];
        assert_eq!(encode_into(&mut memory, |m| m.bytes(1, &[1; 6])).unwrap().len(), 8);
        assert_eq!(encode_into(&mut memory, |m| m.bytes(1, &[1; 7])), Err(BufferFull));
        assert_eq!(
            encode_into(&mut memory, |m| {
                let mut nested = m.begin(1);
                nested.bytes(1, &[1; 500]);
            }),
            Err(BufferFull)
        );
        assert_eq!(encode_into(&mut [], |_| ()).unwrap(), b"");
    }
}
