//! Writing into chunks, as a tracing writer does: a message continues in the next chunk, and
//! lengths in earlier chunks become patches.

#![allow(unsafe_code, reason = "handing out one's own memory is what the raw cursor is for")]

use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use esatto_protozero::Message;
use esatto_protozero::cursor::{OpenSlots, Range, RawDelegate, Slot, Stream};

/// All memory, in chunks of any size: a shared memory buffer of usual size.
const MEMORY: usize = 256 << 10;

/// Patches that are remembered: more than a pass over the memory can make (64 chunks, up to three
/// open messages at each end).
const PATCHES: usize = 1024;

/// A stream over chunks that are used in turn. No reader takes them; the old content is
/// overwritten.
pub(crate) struct Chunks {
    stream: Stream,
    delegate: NonNull<Delegate>,
}

impl Chunks {
    pub(crate) fn new(chunk_size: usize) -> Self {
        let delegate = Delegate {
            memory: vec![MaybeUninit::new(0); MEMORY].into_boxed_slice(),
            chunk_size,
            chunk: usize::MAX,
            used: vec![0; MEMORY / chunk_size],
            patches: vec![Patch::default(); PATCHES],
            patched: 0,
        };
        let delegate = NonNull::from(Box::leak(Box::new(delegate)));
        // SAFETY: the delegate lives until drop, and is otherwise only looked at by methods that
        // borrow this, not during a call.
        Self { stream: unsafe { Stream::new(delegate) }, delegate }
    }

    /// Appends one message.
    #[inline(always)]
    pub(crate) fn write(&mut self, write: impl FnOnce(Message<'_>)) {
        write(self.stream.root());
    }

    /// How many lengths were filled in as patches.
    pub(crate) fn patched(&self) -> usize {
        // SAFETY: no message is open, so no other code uses the delegate.
        unsafe { self.delegate.as_ref() }.patched
    }

    /// The written bytes with their patches applied. No chunk may have been used twice.
    pub(crate) fn read(&self) -> Vec<u8> {
        // SAFETY: as in `patched`.
        let delegate = unsafe { self.delegate.as_ref() };
        let mut memory: Vec<u8> = delegate
            .memory
            .iter()
            // SAFETY: the memory was zeros, and only bytes were written since.
            .map(|byte| unsafe { byte.assume_init() })
            .collect();
        for patch in &delegate.patches[..delegate.patched] {
            memory[patch.offset..][..4].copy_from_slice(&patch.value.expect("the message has ended"));
        }
        let (last, before) = (delegate.chunk, &delegate.used[..delegate.chunk]);
        let chunks = before.iter().copied().chain([self.stream.used()]).enumerate();
        assert!(last < delegate.used.len(), "something was written");
        chunks.flat_map(|(chunk, used)| memory[chunk * delegate.chunk_size..][..used].to_vec()).collect()
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        // SAFETY: leaked in `new`; the stream is not used any more.
        drop(unsafe { Box::from_raw(self.delegate.as_ptr()) });
    }
}

impl fmt::Debug for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunks").finish_non_exhaustive()
    }
}

struct Delegate {
    memory: Box<[MaybeUninit<u8>]>,
    chunk_size: usize,
    /// The current one.
    chunk: usize,
    /// Bytes written into each chunk before this one.
    used: Vec<usize>,
    patches: Vec<Patch>,
    /// Patches made.
    patched: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Patch {
    /// In the memory.
    offset: usize,
    value: Option<[u8; 4]>,
}

// SAFETY: a chunk is handed out until the next one is, and the slots in it become patches then.
// Chunks are longer than anything that must be contiguous.
unsafe impl RawDelegate for Delegate {
    fn next_range(&mut self, used: usize, mut open: OpenSlots<'_>, min_len: usize) -> Range {
        assert!(min_len <= self.chunk_size, "no field needs more than a chunk");
        if let Some(of_chunk) = self.used.get_mut(self.chunk) {
            *of_chunk = used;
        }
        self.chunk = self.chunk.wrapping_add(1) % self.used.len();
        let begin = self.memory.as_ptr().addr();
        open.redirect(|address| {
            let number = self.patched % PATCHES;
            self.patches[number] = Patch { offset: address.as_ptr().addr() - begin, value: None };
            self.patched += 1;
            Slot::Patch(number as u32)
        });
        let chunk = &mut self.memory[self.chunk * self.chunk_size..][..self.chunk_size];
        Range { begin: NonNull::from(chunk).cast(), len: self.chunk_size }
    }

    fn fill_patch(&mut self, patch: u32, value: [u8; 4]) {
        self.patches[patch as usize].value = Some(value);
    }
}
