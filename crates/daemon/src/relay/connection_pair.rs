//! A local connection and its counterpart at the service of the other machine.

use std::os::fd::{AsFd, BorrowedFd};

use esatto_ipc::{ConnectAttempt, Error as IpcError, Stream};
use rustix::event::epoll::EventFlags;

use super::byte_pipe::Pipe;
use super::handshake::{Distrust, Handshake};
use crate::shared_secret::SharedSecret;
use crate::user_shares::Owner;

/// When one end of a pair has closed, the other end has this time to read the rest and to close.
pub(crate) const DRAIN_TIMEOUT_NS: u64 = 5_000_000_000;

/// Two sockets and the bytes on their way between them.
#[derive(Debug)]
pub(crate) struct Pair {
    /// The owner for whom the connection counts.
    pub(crate) owner: Owner,
    local: Stream,
    remote: Remote,
    /// From the producer to the service.
    up: Pipe,
    /// From the service to the producer.
    down: Pipe,
    /// The service was told that nothing more comes.
    has_hung_up: bool,
    /// Events that the loop waits for on the sockets. The loop does not watch a socket without
    /// events, because epoll would report its hang-up for ever.
    pub(crate) watched: Ends<EventFlags>,
}

#[derive(Debug)]
enum Remote {
    Connecting(ConnectAttempt),
    /// Both sides prove a shared secret.
    Proving(Box<Handshake>),
    Connected(Stream),
    /// The connection failed.
    Failed,
}

/// One value for each end of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends<T> {
    pub(crate) local: T,
    pub(crate) remote: T,
}

/// State of a pair after bytes were moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Open,
    /// One end is closed, and the other still has something to read or to answer.
    Draining,
    /// Nothing is left to do.
    Over,
}

impl Pair {
    /// Creates a pair whose counterpart is being connected. The service reads `greeting` first.
    pub(crate) fn new(local: Stream, owner: Owner, remote: ConnectAttempt, greeting: Vec<u8>) -> Self {
        Self {
            owner,
            local,
            remote: Remote::Connecting(remote),
            up: Pipe::beginning_with(greeting),
            down: Pipe::default(),
            has_hung_up: false,
            watched: Ends { local: EventFlags::empty(), remote: EventFlags::empty() },
        }
    }

    /// Returns whether bytes cannot be forwarded yet.
    pub(crate) fn is_connecting(&self) -> bool {
        matches!(self.remote, Remote::Connecting(_) | Remote::Proving(_))
    }

    /// Takes the result of the attempt to connect, or the next step of the proof of `secret`.
    ///
    /// # Errors
    ///
    /// The reason why it failed. The pair must be closed.
    pub(crate) fn continue_connecting(&mut self, secret: Option<&SharedSecret>) -> Result<(), Distrust> {
        self.remote = match (core::mem::replace(&mut self.remote, Remote::Failed), secret) {
            (Remote::Connecting(connecting), Some(secret)) => {
                Remote::Proving(Box::new(Handshake::begin(connecting.finish()?, secret.clone())?))
            }
            (Remote::Connecting(connecting), None) => Remote::Connected(connecting.finish()?),
            (Remote::Proving(mut handshake), _) => match handshake.on_socket()? {
                true => Remote::Connected(handshake.into_stream()),
                false => Remote::Proving(handshake),
            },
            (other, _) => other,
        };
        Ok(())
    }

    /// Moves bytes in both directions, as far as possible without waiting.
    ///
    /// # Errors
    ///
    /// An end broke a rule of the transport. The pair must be closed.
    pub(crate) fn pump(&mut self, scratch: &mut [u8]) -> Result<Standing, IpcError> {
        let Remote::Connected(remote) = &self.remote else { return Ok(Standing::Open) };
        self.up.pump(&self.local, remote, scratch)?;
        self.down.pump(remote, &self.local, scratch)?;
        if self.up.is_finished() && !core::mem::replace(&mut self.has_hung_up, true) {
            // Shut down only this direction, and then wait for the service to close. If a socket
            // with unread input is closed, it discards the bytes that it still sends. Those are the
            // last commits of a process that has ended.
            remote.shutdown_write();
        }
        let pipes = [&self.up, &self.down];
        Ok(if self.down.is_finished() || pipes.iter().all(|pipe| pipe.is_broken()) {
            Standing::Over
        } else if pipes.iter().any(|pipe| pipe.has_ended() || pipe.is_broken()) {
            Standing::Draining
        } else {
            Standing::Open
        })
    }

    /// Returns whether bytes must wait until descriptors are closed.
    pub(crate) fn is_held_up(&self) -> bool {
        self.up.is_held_up() || self.down.is_held_up()
    }

    /// Lets waiting bytes be read again after some time.
    pub(crate) fn resume(&mut self) {
        self.up.resume();
        self.down.resume();
    }

    /// Returns the events to wait for.
    pub(crate) fn wanted(&self) -> Ends<EventFlags> {
        match &self.remote {
            Remote::Connecting(_) => return Ends { local: EventFlags::empty(), remote: EventFlags::OUT },
            Remote::Proving(handshake) => return Ends { local: EventFlags::empty(), remote: handshake.wanted() },
            Remote::Connected(_) | Remote::Failed => {}
        }
        let flags = |reads: &Pipe, writes: &Pipe| {
            let mut flags = EventFlags::empty();
            flags.set(EventFlags::IN, reads.wants_read());
            flags.set(EventFlags::OUT, writes.wants_write());
            flags
        };
        Ends { local: flags(&self.up, &self.down), remote: flags(&self.down, &self.up) }
    }

    pub(crate) fn fds(&self) -> Ends<Option<BorrowedFd<'_>>> {
        let remote = match &self.remote {
            Remote::Connecting(connecting) => Some(connecting.as_fd()),
            Remote::Proving(handshake) => Some(handshake.as_fd()),
            Remote::Connected(stream) => Some(stream.as_fd()),
            Remote::Failed => None,
        };
        Ends { local: Some(self.local.as_fd()), remote }
    }

    /// Returns the number of bytes forwarded to the service and from it.
    pub(crate) fn forwarded(&self) -> (u64, u64) {
        (self.up.forwarded, self.down.forwarded)
    }
}
