//! A local connection and its counterpart at the service of the other machine.

use std::os::fd::{AsFd, BorrowedFd};

use esatto_ipc::{ConnectAttempt, Error as IpcError, Stream};
use rustix::event::epoll::EventFlags;

use super::byte_pipe::Pipe;
use crate::user_shares::Owner;

/// Two sockets and what is on its way between them.
#[derive(Debug)]
pub(crate) struct Pair {
    /// For whom it is counted.
    pub(crate) owner: Owner,
    local: Stream,
    remote: Remote,
    /// From the producer to the service.
    up: Pipe,
    /// From the service to the producer.
    down: Pipe,
    /// The service was told that nothing more comes.
    has_hung_up: bool,
    /// What the loop waits for on the sockets; nothing: it does not watch them, as it would be told of hang-ups for ever.
    pub(crate) watched: Ends<EventFlags>,
}

#[derive(Debug)]
enum Remote {
    Connecting(ConnectAttempt),
    Connected(Stream),
    /// It could not be connected.
    Failed,
}

/// Something for each end of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends<T> {
    pub(crate) local: T,
    pub(crate) remote: T,
}

/// How a pair stands after something was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Open,
    /// One end is gone, and the other still has something to take, or to answer.
    Draining,
    /// Nothing is left to do.
    Over,
}

impl Pair {
    /// A pair whose counterpart is being connected; `greeting` is what the service gets to read first.
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

    pub(crate) fn is_connecting(&self) -> bool {
        matches!(self.remote, Remote::Connecting(_))
    }

    /// The counterpart is connected, or not.
    ///
    /// # Errors
    ///
    /// Why not. The pair must be closed.
    pub(crate) fn finish_connecting(&mut self) -> Result<(), IpcError> {
        match core::mem::replace(&mut self.remote, Remote::Failed) {
            Remote::Connecting(connecting) => self.remote = Remote::Connected(connecting.finish()?),
            other => self.remote = other,
        }
        Ok(())
    }

    /// Moves bytes both ways, as far as that goes without waiting.
    ///
    /// # Errors
    ///
    /// An end broke a rule of the transport. The pair must be closed.
    pub(crate) fn pump(&mut self, scratch: &mut [u8]) -> Result<Standing, IpcError> {
        let Remote::Connected(remote) = &self.remote else { return Ok(Standing::Open) };
        self.up.pump(&self.local, remote, scratch)?;
        self.down.pump(remote, &self.local, scratch)?;
        if self.up.is_finished() && !core::mem::replace(&mut self.has_hung_up, true) {
            // Only this direction, and then wait for the service to close, too: a socket closed while something unread has
            // arrived takes back what is on its way, and those are the last commits of a process that has ended.
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

    /// Whether bytes have to wait until descriptors are closed.
    pub(crate) fn is_held_up(&self) -> bool {
        self.up.is_held_up() || self.down.is_held_up()
    }

    /// Time has passed: they may be read again.
    pub(crate) fn resume(&mut self) {
        self.up.resume();
        self.down.resume();
    }

    /// What to wait for.
    pub(crate) fn wanted(&self) -> Ends<EventFlags> {
        if self.is_connecting() {
            return Ends { local: EventFlags::empty(), remote: EventFlags::OUT };
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
            Remote::Connected(stream) => Some(stream.as_fd()),
            Remote::Failed => None,
        };
        Ends { local: Some(self.local.as_fd()), remote }
    }

    /// Bytes forwarded to the service and from it.
    pub(crate) fn forwarded(&self) -> (u64, u64) {
        (self.up.forwarded, self.down.forwarded)
    }
}
