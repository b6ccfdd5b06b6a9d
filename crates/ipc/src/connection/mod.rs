//! A stream with its buffers, for an event loop.
//!
//! ```text
//! on wake-up:   readable → on_readable()      one bounded read
//!               writable → flush_writes()
//!               while let Some((frame, io)) = next_frame()? { …; }
//!               flush_writes()
//! then:         wants_read(), wants_write()   → what to wait for (level-triggered)
//!               has_work()                    → come back without waiting
//!               is_closed() && !has_work()    → the peer is gone and all it said was handled
//! ```
//!
//! What a peer can make grow is bounded: received bytes by one frame's size, queued replies because a connection whose
//! peer does not read is not read from either ([`Limits::pause_reading_at`]), and everything else by
//! [`Limits::max_queued`], beyond which the connection is given up.

mod write_queue;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use crate::error::Error;
use crate::foreign_fd::ForeignFd;
use crate::frame::{Frame, FrameDecoder, MAX_FRAME};
use crate::sys::{PollFd, Stream, poll};

pub use self::write_queue::WriteQueue;

/// Bytes read per wake-up, so that one busy peer does not starve the others.
const READ_PER_WAKE_UP: usize = MAX_FRAME;

/// Bounds on what a connection queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes waiting to be written beyond which the peer is considered dead.
    pub max_queued: usize,
    /// Bytes waiting to be written from which no more requests are read or handled.
    ///
    /// Only for peers that keep reading while they write. Upstream's producers block in a write and read nothing
    /// meanwhile; two sides that wait for each other never go on, so never pause those (`usize::MAX`).
    pub pause_reading_at: usize,
}

impl Limits {
    /// For a client: never stops reading, otherwise two peers could wait for each other.
    pub const CLIENT: Self = Self { max_queued: 64 << 20, pause_reading_at: usize::MAX };
}

/// A stream, the frames that arrived on it and the bytes that wait to leave.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    decoder: FrameDecoder,
    outgoing: WriteQueue,
    limits: Limits,
    /// The newest descriptor that arrived and that nobody took.
    fd_slot: Option<ForeignFd>,
    closed: bool,
    is_held_up: bool,
}

/// What may be used while a frame is alive that borrows the receive buffer.
#[derive(Debug)]
pub struct Io<'c> {
    /// Replies go here.
    pub out: &'c mut WriteQueue,
    /// The newest descriptor that arrived; a handler that expects one takes it, others leave it.
    pub fd: &'c mut Option<ForeignFd>,
}

impl Connection {
    /// Buffers for a connected stream.
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

    /// Reads what is there, up to a bound. Frames that are complete then come from [`next_frame`](Self::next_frame).
    ///
    /// # Errors
    ///
    /// The connection must be closed. The end of the stream is not an error, see [`is_closed`](Self::is_closed).
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
                // Disposes of the one that nobody took. Nothing more is read now: let the frame it
                // belongs to be handled first.
                self.fd_slot = received.fd;
                break;
            }
            if received.len < len {
                // Most likely that was all, and if not the next wake-up comes at once.
                break;
            }
        }
        Ok(())
    }

    /// The next complete frame, and what is needed to answer it.
    ///
    /// `None` if there is none or if the peer must read its replies first; [`has_work`](Self::has_work) tells when to ask
    /// again.
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

    /// Writes as much as the socket takes now.
    ///
    /// # Errors
    ///
    /// [`Error::PeerNotReading`] if too much is left, [`Error::Disconnected`], or another failure of the socket. The connection
    /// must be closed.
    pub fn flush_writes(&mut self) -> Result<(), Error> {
        self.outgoing.write_to(&self.stream)?;
        let (queued, limit) = (self.outgoing.queued(), self.limits.max_queued);
        if queued > limit { Err(Error::PeerNotReading { queued, limit }) } else { Ok(()) }
    }

    /// Whether the loop should wait for the socket to become readable.
    pub fn wants_read(&self) -> bool {
        !self.closed && !self.is_held_up && !self.is_paused() && self.decoder.buffered() < MAX_FRAME
    }

    /// Whether a descriptor came next that must wait until others are closed. The loop calls
    /// [`resume_reading`](Self::resume_reading) some time later.
    pub fn is_held_up(&self) -> bool {
        self.is_held_up
    }

    /// The loop should wait for the socket to become readable again.
    pub fn resume_reading(&mut self) {
        self.is_held_up = false;
    }

    /// Whether the loop should wait for the socket to become writable.
    pub fn wants_write(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Whether [`next_frame`](Self::next_frame) has something to return without waiting for the socket.
    pub fn has_work(&self) -> bool {
        !self.is_paused() && self.decoder.has_frame()
    }

    /// Gives back what a burst has left behind, if nothing waits to be handled: many connections sleep most of the time.
    pub fn rest(&mut self) {
        self.decoder.release();
    }

    /// Whether the peer closed its end. Frames it sent before may still be there.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The queue of bytes that wait to be written.
    pub fn out(&mut self) -> &mut WriteQueue {
        &mut self.outgoing
    }

    /// Bytes that wait to be written.
    pub fn queued(&self) -> usize {
        self.outgoing.queued()
    }

    /// Bytes of memory that hold what waits to be written, and what was received and is no whole
    /// frame yet.
    pub fn held(&self) -> usize {
        self.outgoing.queued() + self.decoder.held()
    }

    /// Takes the newest descriptor that arrived, from a peer that is trusted.
    pub fn take_fd(&mut self) -> Option<OwnedFd> {
        self.fd_slot.take().map(ForeignFd::into_owned)
    }

    /// The socket.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The receiving side, for its counters.
    pub fn decoder(&self) -> &FrameDecoder {
        &self.decoder
    }

    /// Waits until the socket is readable (or writable, if something is queued) and does both; for simple clients.
    ///
    /// Returns false if `deadline` passed (`None` waits forever). A signal ends the wait early, as if something had arrived.
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
