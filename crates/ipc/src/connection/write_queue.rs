//! [`WriteQueue`]: the bytes that wait until the socket takes them.

use core::mem;
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

use crate::error::Error;
use crate::frame_size::MAX_FRAME;
use crate::sys::Stream;

/// A larger buffer is freed when it is empty. Buffers double when they grow, so one that held the
/// largest frame is kept.
const KEEP_BUFFER: usize = 2 * MAX_FRAME;

/// A buffer of this size is kept even if little of it was used.
const SMALL_BUFFER: usize = 16 * 1024;

/// A larger buffer is freed when its connection rests.
const RESTING_BUFFER: usize = 64 * 1024;

/// Bytes of a queue that never becomes empty, from which on the memory of written ones is freed.
const FORGET_AT: usize = 64 * 1024;

/// Returns true if a buffer that held `len` bytes is worth its memory: the kernel clears large
/// memory page by page when it is needed again.
pub(crate) fn is_kept(len: usize, capacity: usize) -> bool {
    capacity <= SMALL_BUFFER || capacity <= KEEP_BUFFER && len >= capacity / 4
}

/// Bytes that wait to be written, in pieces. Each piece may carry one descriptor with its first
/// byte.
#[derive(Debug, Default)]
pub struct WriteQueue {
    pieces: VecDeque<Piece>,
    /// Number of bytes of the first piece that were written already.
    written: usize,
    /// Buffer of a written piece, for reuse.
    spare: Vec<u8>,
}

#[derive(Debug, Default)]
struct Piece {
    bytes: Vec<u8>,
    fd: Option<OwnedFd>,
}

impl WriteQueue {
    /// Returns the buffer to which frames without a descriptor are appended.
    #[inline(never)]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        if self.pieces.is_empty() {
            let bytes = mem::take(&mut self.spare);
            self.pieces.push_back(Piece { bytes, fd: None });
        }
        &mut self.pieces.back_mut().expect("not empty").bytes
    }

    /// Lets `write` append one frame, with which `fd` is sent. The descriptor is closed after that.
    ///
    /// If nothing was written, the descriptor is closed at once, so that it is not sent with
    /// another frame.
    pub fn with_fd<T>(&mut self, fd: OwnedFd, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut piece = Piece { bytes: Vec::new(), fd: Some(fd) };
        let result = write(&mut piece.bytes);
        if !piece.bytes.is_empty() {
            self.pieces.push_back(piece);
        }
        result
    }

    /// Returns the number of bytes that wait to be written.
    #[inline(never)]
    pub fn queued(&self) -> usize {
        self.pieces.iter().map(|p| p.bytes.len()).sum::<usize>() - self.written
    }

    /// Returns the number of descriptors that wait to be sent.
    #[cfg(any(feature = "channel", feature = "server"))]
    pub(crate) fn queued_fds(&self) -> usize {
        self.pieces.iter().filter(|piece| piece.fd.is_some()).count()
    }

    /// Returns true if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.pieces.iter().all(|p| p.bytes.is_empty())
    }

    /// Writes until the stream accepts no more.
    ///
    /// # Errors
    ///
    /// As [`Stream::send`].
    pub fn write_to(&mut self, stream: &Stream) -> Result<(), Error> {
        while let Some(piece) = self.pieces.front_mut() {
            let rest = &piece.bytes[self.written..];
            if !rest.is_empty() {
                let n = stream.send(rest, piece.fd.as_ref().map(AsFd::as_fd))?;
                if n == 0 {
                    self.forget_written();
                    return Ok(());
                }
                piece.fd = None;
                self.written += n;
            }
            if self.written == piece.bytes.len() {
                self.recycle_front();
            }
        }
        Ok(())
    }

    /// Frees the memory that is kept for the next frames, if it is large.
    pub(super) fn release(&mut self) {
        if self.spare.capacity() > RESTING_BUFFER {
            self.spare = Vec::new();
        }
    }

    /// Frees the memory of written bytes in a queue that never becomes empty. More bytes are
    /// appended to the same buffer as long as the peer reads only a part at a time.
    fn forget_written(&mut self) {
        let Some(piece) = self.pieces.front_mut() else { return };
        // The moved bytes are fewer than those written since the last time.
        if self.written >= FORGET_AT && self.written * 2 >= piece.bytes.len() {
            piece.bytes.drain(..mem::take(&mut self.written));
        }
    }

    fn recycle_front(&mut self) {
        self.written = 0;
        if let Some(mut piece) = self.pieces.pop_front() {
            if is_kept(piece.bytes.len(), piece.bytes.capacity()) {
                piece.bytes.clear();
                self.spare = piece.bytes;
            }
        }
    }
}
