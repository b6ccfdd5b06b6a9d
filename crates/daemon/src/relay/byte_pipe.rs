//! Bytes on their way from one socket to another.

use esatto_ipc::{Error as IpcError, Stream};

/// Bytes that may wait for a receiver that is slower than its sender (`docs/spec/wire-protocol.md`
/// §16). At this bound, nothing is read from the sender.
pub(crate) const MAX_WAITING: usize = 128 << 10;

/// One direction of a forwarded connection.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    waiting: Vec<u8>,
    /// Number of bytes of `waiting` that were sent already.
    written: usize,
    /// The sender sends no more.
    ended: bool,
    /// The receiver takes no more: input is read and discarded.
    broken: bool,
    /// The next bytes come with a descriptor, which must wait until others are closed.
    held_up: bool,
    pub(crate) forwarded: u64,
}

impl Pipe {
    /// Creates a pipe whose first bytes are those of the relay.
    pub(crate) fn beginning_with(bytes: Vec<u8>) -> Self {
        Self { waiting: bytes, ..Self::default() }
    }

    /// Moves as many bytes as possible without waiting, at most [`MAX_WAITING`] new ones. `scratch`
    /// holds as many.
    ///
    /// A descriptor that comes along is closed, because it cannot reach another machine. The bytes
    /// that it came with are forwarded. The service then finds that an offered descriptor is
    /// missing, and continues without it.
    ///
    /// # Errors
    ///
    /// The sender broke a rule of the transport.
    pub(crate) fn pump(&mut self, from: &Stream, to: &Stream, scratch: &mut [u8]) -> Result<(), IpcError> {
        self.flush(to);
        if !self.wants_read() {
            return Ok(());
        }
        let room = MAX_WAITING.saturating_sub(self.waiting.len() - self.written).min(scratch.len());
        let Some(received) = from.recv(&mut scratch[..room])? else {
            self.held_up = from.is_held_up();
            return Ok(());
        };
        // The closing threads close it, because its sender can make `close` block.
        drop(received.fd);
        self.ended = received.len == 0;
        let bytes = &scratch[..received.len];
        let sent = if self.is_empty() && !self.broken { self.send(to, bytes) } else { 0 };
        if !self.broken && sent < bytes.len() {
            self.waiting.drain(..self.written);
            self.written = 0;
            self.waiting.extend_from_slice(&bytes[sent..]);
        }
        Ok(())
    }

    /// Sends the waiting bytes.
    fn flush(&mut self, to: &Stream) {
        if self.is_empty() {
            return;
        }
        let waiting = core::mem::take(&mut self.waiting);
        self.written += self.send(to, &waiting[self.written..]);
        if self.written < waiting.len() && !self.broken {
            self.waiting = waiting;
        } else {
            // Give the memory back: most pipes are idle most of the time.
            self.written = 0;
        }
    }

    fn send(&mut self, to: &Stream, bytes: &[u8]) -> usize {
        match to.send(bytes, None) {
            Ok(sent) => {
                self.forwarded += sent as u64;
                sent
            }
            Err(_) => {
                self.broken = true;
                0
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.len() == self.written
    }

    /// Returns whether to wait for more bytes.
    pub(crate) fn wants_read(&self) -> bool {
        !self.ended && !self.held_up && self.waiting.len() - self.written < MAX_WAITING
    }

    /// Returns whether the pipe must wait until descriptors are closed: see
    /// [`resume`](Self::resume).
    pub(crate) fn is_held_up(&self) -> bool {
        self.held_up
    }

    /// Reads again after some time: perhaps fewer descriptors wait.
    pub(crate) fn resume(&mut self) {
        self.held_up = false;
    }

    /// Returns whether to wait until the receiver takes more.
    pub(crate) fn wants_write(&self) -> bool {
        !self.broken && !self.is_empty()
    }

    /// Returns whether the sender has closed its end.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns whether all bytes of a closed sender were forwarded.
    pub(crate) fn is_finished(&self) -> bool {
        self.ended && self.is_empty()
    }

    /// Returns whether the receiver has closed its end.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esatto_ipc::{Admission, Disposal};
    use std::os::fd::{AsFd as _, OwnedFd};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Pumps until nothing moves.
    fn pump(pipe: &mut Pipe, from: &Stream, to: &Stream) {
        let mut scratch = vec![0; MAX_WAITING];
        loop {
            let before = (pipe.forwarded, pipe.waiting.len());
            pipe.pump(from, to, &mut scratch).unwrap();
            if (pipe.forwarded, pipe.waiting.len()) == before {
                return;
            }
        }
    }

    fn fill(stream: &Stream) -> usize {
        let mut written = 0;
        loop {
            match stream.send(&[7; 4096], None).unwrap() {
                0 => return written,
                n => written += n,
            }
        }
    }

    fn drain(stream: &Stream) -> usize {
        let (mut read, mut bytes) = (0, [0; 4096]);
        while let Some(received) = stream.recv(&mut bytes).unwrap().filter(|received| received.len > 0) {
            read += received.len;
        }
        read
    }

    #[test]
    fn waiting_bytes_are_bounded_and_none_is_lost() {
        let (source, from) = Stream::pair().unwrap();
        let (to, sink) = Stream::pair().unwrap();
        let mut pipe = Pipe::beginning_with(b"hello".to_vec());
        let mut sent = 5 + fill(&source);
        loop {
            pump(&mut pipe, &from, &to);
            assert!(pipe.waiting.len() <= MAX_WAITING);
            match fill(&source) {
                0 => break,
                more => sent += more,
            }
        }
        assert!(!pipe.wants_read() && pipe.wants_write(), "the receiver must read first");
        drop(source);
        let mut received = 0;
        while !pipe.is_finished() {
            received += drain(&sink);
            pump(&mut pipe, &from, &to);
        }
        received += drain(&sink);
        assert_eq!((received, pipe.forwarded), (sent, sent as u64));
        assert_eq!(pipe.waiting.capacity(), 0, "an idle pipe has no memory");
    }

    #[test]
    fn a_closed_receiver_breaks_the_pipe() {
        let (source, from) = Stream::pair().unwrap();
        let (to, sink) = Stream::pair().unwrap();
        drop(sink);
        let mut pipe = Pipe::default();
        fill(&source);
        // Twice as often as the pipe can hold bytes.
        for _ in 0..8 {
            pump(&mut pipe, &from, &to);
        }
        assert!(pipe.is_broken() && pipe.wants_read() && !pipe.wants_write());
        assert_eq!((drain(&from), pipe.waiting.capacity()), (0, 0), "what comes is thrown away");
    }

    /// Makes descriptors wait while its flag is set.
    #[derive(Debug)]
    struct Busy(AtomicBool);

    impl Disposal for Busy {
        fn close_passed(&self, _: OwnedFd) {}

        fn close_connection(&self, _: OwnedFd) {}

        fn admission(&self) -> Admission {
            if self.0.load(Ordering::Relaxed) { Admission::Later } else { Admission::Granted }
        }
    }

    #[test]
    fn the_socket_is_not_polled_while_a_descriptor_waits() {
        let (source, mut from) = Stream::pair().unwrap();
        let (to, sink) = Stream::pair().unwrap();
        let busy = Arc::new(Busy(AtomicBool::new(true)));
        from.set_disposal(Arc::clone(&busy) as Arc<dyn Disposal>);
        let mut pipe = Pipe::default();
        source.send(b"before", None).unwrap();
        pump(&mut pipe, &from, &to);
        assert!(!pipe.is_held_up(), "it is only idle");
        source.send(b"a frame", Some(sink.as_fd())).unwrap();
        pump(&mut pipe, &from, &to);
        assert!(pipe.is_held_up() && !pipe.wants_read() && pipe.forwarded == 6);
        pipe.resume();
        pump(&mut pipe, &from, &to);
        assert!(pipe.is_held_up(), "it still must wait");
        busy.0.store(false, Ordering::Relaxed);
        pipe.resume();
        pump(&mut pipe, &from, &to);
        assert!(pipe.wants_read() && pipe.forwarded == 13);
    }

    #[test]
    fn a_descriptor_is_closed_and_its_bytes_are_forwarded() {
        let (source, from) = Stream::pair().unwrap();
        let (to, sink) = Stream::pair().unwrap();
        let (read_end, write_end) = rustix::pipe::pipe().unwrap();
        source.send(b"a frame", Some(rustix::fd::AsFd::as_fd(&write_end))).unwrap();
        drop(write_end);
        pump(&mut Pipe::default(), &from, &to);
        let mut bytes = [0; 16];
        let received = sink.recv(&mut bytes).unwrap().unwrap();
        assert_eq!((&bytes[..received.len], received.fd.is_some()), (&b"a frame"[..], false));
        // All write ends are closed.
        assert_eq!(rustix::io::read(&read_end, &mut bytes), Ok(0));
    }
}
