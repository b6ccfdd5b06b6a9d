//! [`Link`]: the sending side of a connection, which threads share.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use esatto_ipc::{Interest, Readiness};
use rustix::event::{EventfdFlags, eventfd};

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
    /// Wakes the thread that waits for the socket.
    bell: OnceLock<OwnedFd>,
}

#[derive(Debug, Default)]
struct Sending {
    outbox: Outbox,
    /// Of the driver, which flushes.
    waker: Option<Waker>,
    /// A thread waits for the socket, but not for room in it.
    needs_bell: bool,
    is_closed: bool,
}

impl Link {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, outbox: Mutex::default(), bell: OnceLock::new() }
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
            if std::mem::take(&mut sending.needs_bell) {
                if let Some(bell) = self.bell.get() {
                    // It can only be full of rings.
                    let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
                }
            }
        }
        Ok(())
    }

    /// Sends what waits. Then waits until the socket is ready, a message of another thread has to
    /// wait for room, or the time is over. `interest` gets true if messages wait for room.
    pub(crate) fn wait(&self, interest: impl Fn(bool) -> Interest, timeout: Option<Duration>) -> io::Result<()> {
        let bell = match self.bell.get() {
            Some(bell) => bell,
            None => {
                let new = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
                self.bell.get_or_init(|| new)
            }
        };
        let mut sending = self.lock();
        let write = !sending.outbox.flush(&self.socket)?;
        sending.needs_bell = !write;
        drop(sending);
        self.socket.wait(interest(write), bell, timeout)?;
        self.lock().needs_bell = false;
        Ok(())
    }

    /// Sends what waits. Returns true if nothing is left.
    pub(crate) fn flush(&self) -> io::Result<bool> {
        self.lock().outbox.flush(&self.socket)
    }

    /// Sends what waits, as soon as the socket has room, and wakes the task when there is more.
    /// Returns true if nothing is left.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>, io: &mut impl Readiness) -> io::Result<bool> {
        loop {
            let mut sending = self.lock();
            sending.waker = Some(cx.waker().clone());
            if sending.outbox.flush(&self.socket)? {
                return Ok(true);
            }
            drop(sending);
            match io.poll_writable(cx) {
                Poll::Ready(result) => result?,
                Poll::Pending => return Ok(false),
            }
        }
    }

    /// Returns true if messages wait for room in the socket.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.lock().outbox.is_empty()
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
