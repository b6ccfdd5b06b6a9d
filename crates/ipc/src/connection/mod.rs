//! [`Connection`]: a stream with its buffers, for an event loop.
//!
//! ```text
//! on wake-up:   readable → on_readable()      one bounded read
//!               writable → flush_writes()
//!               while let Some((frame, io)) = next_frame()? { …; }
//!               flush_writes()
//! then:         wants_read(), wants_write()   → what to wait for (level-triggered)
//!               has_work()                    → come back without waiting
//!               is_closed() && !has_work()    → the peer is gone, and all its frames were handled
//! ```
//!
//! Everything that a peer can make grow is bounded. Received bytes are bounded by one frame's size.
//! Queued replies are bounded because a connection is not read while its peer does not read
//! ([`Limits::pause_reading_at`]). Everything else is bounded by [`Limits::max_queued`], beyond
//! which the connection is closed.

mod write_queue;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use crate::error::Error;
use crate::foreign_fd::ForeignFd;
use crate::frame::{Frame, FrameDecoder, MAX_FRAME};
use crate::sys::{PollFd, Stream, poll};

pub use self::write_queue::WriteQueue;
#[cfg(any(feature = "channel", feature = "server"))]
pub(crate) use self::write_queue::is_kept;

/// Bytes read per wake-up, so that one busy peer does not starve other peers.
const READ_PER_WAKE_UP: usize = MAX_FRAME;

/// Bounds on the queues of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest number of bytes that wait to be written. Beyond it the peer is considered dead.
    pub max_queued: usize,
    /// Number of bytes that wait to be written at which no more requests are read or handled.
    ///
    /// Use it only for peers that read while they write. Upstream's producers block in a write and
    /// read nothing meanwhile. Two sides that wait for each other never continue, so never pause
    /// those (`usize::MAX`).
    pub pause_reading_at: usize,
}

impl Limits {
    /// Limits of a client. It never stops reading, because otherwise two peers could wait for each
    /// other.
    pub const CLIENT: Self = Self { max_queued: 64 << 20, pause_reading_at: usize::MAX };
}

/// Stream with the frames that arrived and the bytes that wait to be written.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    decoder: FrameDecoder,
    outgoing: WriteQueue,
    limits: Limits,
    /// The newest descriptor that arrived and was not taken.
    fd_slot: Option<ForeignFd>,
    closed: bool,
    is_held_up: bool,
}

/// Parts of a connection that can be used while a frame borrows the receive buffer.
#[derive(Debug)]
pub struct Io<'c> {
    /// Queue for replies.
    pub out: &'c mut WriteQueue,
    /// The newest descriptor that arrived. A handler that expects a descriptor takes it.
    pub fd: &'c mut Option<ForeignFd>,
}

impl Connection {
    /// Makes a connection of a connected stream.
    pub fn new(stream: Stream, limits: Limits) -> Self {
        Self {
            stream,
            decoder: FrameDecoder::new(),
            outgoing: WriteQueue::default(),
            limits,
            fd_slot: None,
            closed: false,
            is_held_up: false,
        }
    }

    /// Reads the bytes that have arrived, up to a bound. [`next_frame`](Self::next_frame) returns
    /// the complete frames then.
    ///
    /// # Errors
    ///
    /// The connection must be closed. The end of the stream is not an error, see
    /// [`is_closed`](Self::is_closed).
    pub fn on_readable(&mut self) -> Result<(), Error> {
        let mut budget = READ_PER_WAKE_UP;
        self.is_held_up = false;
        while !self.closed && budget > 0 && !self.is_paused() {
            let room = self.decoder.spare();
            if room.is_empty() {
                break;
            }
            let len = room.len().min(budget);
            let Some(received) = self.stream.recv(&mut room[..len])? else {
                self.is_held_up = self.stream.is_held_up();
                break;
            };
            self.decoder.advance(received.len);
            budget -= received.len;
            self.closed = received.len == 0;
            if received.fd.is_some() {
                // Drops a descriptor that was not taken. Nothing more is read now, so that the
                // frame of this descriptor is handled first.
                self.fd_slot = received.fd;
                break;
            }
            if received.len < len {
                // Most likely that was all. If not, the next wake-up comes at once.
                break;
            }
        }
        Ok(())
    }

    /// Returns the next complete frame, and the parts that are needed to answer it.
    ///
    /// Returns `None` if there is none, or if the peer must read its replies first. Call it again
    /// when [`has_work`](Self::has_work) is true.
    ///
    /// # Errors
    ///
    /// [`Error::FrameTooLarge`]: the connection must be closed.
    pub fn next_frame(&mut self) -> Result<Option<(Frame<'_>, Io<'_>)>, Error> {
        if self.is_paused() {
            return Ok(None);
        }
        let Self { decoder, outgoing, fd_slot, .. } = self;
        Ok(decoder.next_frame()?.map(|frame| (frame, Io { out: outgoing, fd: fd_slot })))
    }

    /// Writes as many bytes as the socket accepts now.
    ///
    /// # Errors
    ///
    /// [`Error::PeerNotReading`] if too many bytes are left, [`Error::Disconnected`], or another
    /// failure of the socket. The connection must be closed.
    pub fn flush_writes(&mut self) -> Result<(), Error> {
        self.outgoing.write_to(&self.stream)?;
        let (queued, limit) = (self.outgoing.queued(), self.limits.max_queued);
        if queued > limit { Err(Error::PeerNotReading { queued, limit }) } else { Ok(()) }
    }

    /// Returns true if the loop should wait for the socket to become readable.
    pub fn wants_read(&self) -> bool {
        !self.closed && !self.is_held_up && !self.is_paused() && self.decoder.buffered() < MAX_FRAME
    }

    /// Returns true if the next descriptor must wait until others are closed. The loop calls
    /// [`resume_reading`](Self::resume_reading) some time later.
    pub fn is_held_up(&self) -> bool {
        self.is_held_up
    }

    /// Lets the loop wait again for the socket to become readable.
    pub fn resume_reading(&mut self) {
        self.is_held_up = false;
    }

    /// Returns true if the loop should wait for the socket to become writable.
    pub fn wants_write(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Returns true if [`next_frame`](Self::next_frame) can return a frame without waiting for the
    /// socket.
    pub fn has_work(&self) -> bool {
        !self.is_paused() && self.decoder.has_frame()
    }

    /// Frees the buffers that a burst has enlarged, if nothing waits to be handled. Many
    /// connections are idle most of the time.
    pub fn rest(&mut self) {
        self.decoder.release();
        self.outgoing.release();
    }

    /// Returns true if the peer closed its end. Frames that it sent before may still wait.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Returns the queue of bytes that wait to be written.
    pub fn out(&mut self) -> &mut WriteQueue {
        &mut self.outgoing
    }

    /// Returns the number of bytes that wait to be written.
    pub fn queued(&self) -> usize {
        self.outgoing.queued()
    }

    /// Returns the bytes of memory for data that waits to be written, and for received data that is
    /// no whole frame yet.
    pub fn held(&self) -> usize {
        self.outgoing.queued() + self.decoder.held()
    }

    /// Takes the newest descriptor that arrived, from a peer that is trusted.
    pub fn take_fd(&mut self) -> Option<OwnedFd> {
        self.fd_slot.take().map(ForeignFd::into_owned)
    }

    /// Returns the socket.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns the receiving side, for its counters.
    pub fn decoder(&self) -> &FrameDecoder {
        &self.decoder
    }

    /// Waits until the socket is readable, or writable if something is queued, and reads and
    /// writes. For simple clients.
    ///
    /// Returns false if `deadline` has passed (`None` waits forever). A signal ends the wait early,
    /// as if bytes had arrived.
    ///
    /// # Errors
    ///
    /// As [`on_readable`](Self::on_readable) and [`flush_writes`](Self::flush_writes).
    pub fn wait(&mut self, deadline: Option<Instant>) -> Result<bool, Error> {
        let timeout = deadline.map(|d| d.saturating_duration_since(Instant::now()));
        let mut fds = [PollFd::new(self.stream.as_fd(), self.wants_write())];
        match poll(&mut fds, timeout) {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(e) => return Err(e.into()),
        }
        let (is_readable, is_writable) = (fds[0].is_readable(), fds[0].is_writable());
        if is_writable {
            self.flush_writes()?;
        }
        if is_readable {
            self.on_readable()?;
        }
        Ok(true)
    }

    fn is_paused(&self) -> bool {
        self.outgoing.queued() >= self.limits.pause_reading_at
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
