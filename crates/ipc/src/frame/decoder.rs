//! [`FrameDecoder`]: cuts a stream of bytes into frames.

use super::Frame;
#[cfg(feature = "rpc")]
use super::rpc::RpcFrame;
use crate::error::Error;
use crate::frame_size::{HEADER_LEN, MAX_FRAME, MAX_PAYLOAD};

/// Size of a connection's buffer at its first use.
const INITIAL_BUFFER: usize = 4096;

/// A larger buffer is freed when there is time. A producer's commits fit into this size.
const KEEP_BUFFER: usize = 16 * 1024;

/// Cuts received bytes into frames. The transport may have split them at any place.
///
/// The buffer grows with the *received* bytes, never with the announcement in a header, up to
/// [`MAX_FRAME`]. This is also the bound on frames that wait to be handled. A receiver that stops
/// calling [`next_frame`](Self::next_frame) soon has no [`spare`](Self::spare) room, which stops
/// its peer.
///
/// After an error every further call returns the same error.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    /// Buffer, initialised up to its length. Frames are in `start..end`.
    buf: Vec<u8>,
    start: usize,
    end: usize,
    consumed: u64,
    skipped: u64,
    /// The announced length that ended the stream.
    announced: Option<u32>,
}

impl FrameDecoder {
    /// Makes an empty decoder. It allocates at its first use.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns room for received bytes. Call [`advance`](Self::advance) then. The room is empty if
    /// complete frames fill the buffer.
    pub fn spare(&mut self) -> &mut [u8] {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
        if self.end == self.buf.len() {
            self.make_room();
        }
        &mut self.buf[self.end..]
    }

    /// Adds the first `len` bytes of [`spare`](Self::spare), which the caller has filled.
    ///
    /// # Panics
    ///
    /// If there was less room.
    pub fn advance(&mut self, len: usize) {
        assert!(len <= self.buf.len() - self.end, "advanced beyond the spare room");
        self.end += len;
    }

    /// Copies bytes into the buffer, as many as there is room for, and returns their number. It is
    /// at least one unless complete frames fill the buffer.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while taken < bytes.len() {
            let room = self.spare();
            let len = room.len().min(bytes.len() - taken);
            if len == 0 {
                break;
            }
            room[..len].copy_from_slice(&bytes[taken..taken + len]);
            self.advance(len);
            taken += len;
        }
        taken
    }

    /// Returns the next complete frame; `None` if more bytes are needed.
    ///
    /// Frames that are empty or not protobuf are skipped and counted.
    ///
    /// # Errors
    ///
    /// [`Error::FrameTooLarge`] as soon as the header of such a frame has arrived. The connection
    /// must be closed.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Error> {
        self.next_parsed(Frame::parse)
    }

    /// As [`next_frame`](Self::next_frame), with the extensions of the RPC library. Also returns the
    /// size of the whole frame in bytes, header included.
    ///
    /// # Errors
    ///
    /// As [`next_frame`](Self::next_frame).
    #[cfg(feature = "rpc")]
    pub fn next_rpc_frame(&mut self) -> Result<Option<(RpcFrame<'_>, usize)>, Error> {
        self.next_parsed(|payload| RpcFrame::parse(payload).map(|frame| (frame, HEADER_LEN + payload.len())))
    }

    #[inline]
    fn next_parsed<'a, F>(&'a mut self, parse: impl Fn(&'a [u8]) -> Option<F>) -> Result<Option<F>, Error> {
        // The frame borrows the buffer, but not the counters.
        let Self { buf, start, end, consumed, skipped, announced } = self;
        let buf = buf.as_slice();
        loop {
            if let Some(announced) = *announced {
                return Err(Error::FrameTooLarge { announced });
            }
            let received = &buf[*start..*end];
            let Some((header, rest)) = received.split_first_chunk::<HEADER_LEN>() else { return Ok(None) };
            let header = u32::from_le_bytes(*header);
            let len = header as usize;
            if len > MAX_PAYLOAD {
                *announced = Some(header);
                continue;
            }
            let Some(payload) = rest.get(..len) else { return Ok(None) };
            *start += HEADER_LEN + len;
            *consumed += (HEADER_LEN + len) as u64;
            match parse(payload) {
                Some(frame) if len > 0 => return Ok(Some(frame)),
                _ => *skipped += 1,
            }
        }
    }

    /// Returns true if [`next_frame`](Self::next_frame) would return a frame or an error without
    /// more bytes.
    pub fn has_frame(&self) -> bool {
        let received = &self.buf[self.start..self.end];
        self.announced.is_some()
            || received.split_first_chunk::<HEADER_LEN>().is_some_and(|(header, rest)| {
                let len = u32::from_le_bytes(*header) as usize;
                len > MAX_PAYLOAD || rest.len() >= len
            })
    }

    /// Frees a buffer that has become large, if it is empty.
    pub fn release(&mut self) {
        if self.start == self.end && self.buf.len() > KEEP_BUFFER {
            (self.start, self.end) = (0, 0);
            self.buf = Vec::new();
        }
    }

    /// Returns the number of bytes that were received and not yet returned as frames.
    pub fn buffered(&self) -> usize {
        self.end - self.start
    }

    /// Returns the size of the buffer, or 0 if it is empty: [`release`](Self::release) frees it
    /// only then.
    pub fn held(&self) -> usize {
        if self.start == self.end { 0 } else { self.buf.len() }
    }

    /// Returns the number of bytes up to the end of the last frame that was returned or skipped.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Returns the number of frames that were skipped because they were empty or not protobuf.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Makes room if the buffer is full up to its end: moves the rest to the front, or grows.
    #[cold]
    fn make_room(&mut self) {
        if self.start > 0 {
            self.buf.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        // After moving only a few bytes, reads would be tiny: grow unless half of the buffer is
        // free now.
        if self.end > self.buf.len() / 2 || self.buf.is_empty() {
            let len = (self.buf.len() * 2).clamp(INITIAL_BUFFER, MAX_FRAME);
            self.buf.resize(len, 0);
        }
    }
}
