//! [`Link`]: the sending side of a connection, which threads share.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use esatto_ipc::{Interest, Readiness};

use crate::call_error::CallError;
use crate::header::Header;
use crate::socket::{MAX_MESSAGE_BYTES, MAX_MESSAGE_HANDLES, Outbox, Socket, cost};

/// Bytes of messages that may wait: for a peer that does not read, and events for the program. A
/// handle counts as 16 KiB.
pub const MAX_WAITING_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) socket: Socket,
    outbox: Mutex<Sending>,
}

#[derive(Debug, Default)]
struct Sending {
    outbox: Outbox,
    /// Of the driver, which flushes.
    waker: Option<Waker>,
    is_closed: bool,
}

impl Link {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, outbox: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Sending> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message whose first bytes are room for the header.
    pub(crate) fn send(&self, header: Header, message: &mut [u8], handles: &[BorrowedFd<'_>]) -> Result<(), CallError> {
        check_size(message.len(), handles.len())?;
        message[..Header::SIZE].copy_from_slice(&header.to_bytes());
        let mut sending = self.lock();
        if sending.is_closed {
            return Err(CallError::Closed);
        }
        let is_full = sending.outbox.cost() + cost(message.len(), handles.len()) > MAX_WAITING_BYTES;
        if is_full && !sending.outbox.is_empty() {
            return Err(CallError::Full);
        }
        sending.outbox.send(&self.socket, message, handles)?;
        if !sending.outbox.is_empty() {
            if let Some(waker) = sending.waker.take() {
                waker.wake();
            }
        }
        Ok(())
    }

    /// Sends what waits. Returns true if nothing is left.
    pub(crate) fn flush(&self) -> io::Result<bool> {
        self.lock().outbox.flush(&self.socket)
    }

    /// Sends what waits, as soon as the socket has room, and wakes the task when there is more.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>, io: &mut impl Readiness) -> io::Result<()> {
        loop {
            let mut sending = self.lock();
            sending.waker = Some(cx.waker().clone());
            if sending.outbox.flush(&self.socket)? {
                return Ok(());
            }
            drop(sending);
            match io.poll_writable(cx) {
                Poll::Ready(result) => result?,
                Poll::Pending => return Ok(()),
            }
        }
    }

    /// Returns the events to wait for.
    pub(crate) fn interest(&self) -> Interest {
        Interest { read: true, write: !self.lock().outbox.is_empty() }
    }

    /// Lets no more messages through, and ends the connection.
    pub(crate) fn close(&self) {
        let mut sending = self.lock();
        sending.is_closed = true;
        if let Some(waker) = sending.waker.take() {
            waker.wake();
        }
        drop(sending);
        self.socket.shutdown();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }
}

pub(crate) fn check_size(bytes: usize, handles: usize) -> Result<(), CallError> {
    if bytes > MAX_MESSAGE_BYTES || handles > MAX_MESSAGE_HANDLES {
        return Err(CallError::TooLarge { bytes, handles });
    }
    Ok(())
}
