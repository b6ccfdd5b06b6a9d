//! Simulated streams: both directions of each connection, with buffers of any size, which deliver
//! any number of bytes at any time, and end at any byte.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use esatto_ipc::simulated::Link;
use esatto_ipc::{Error, Readiness, Stream};

use super::shared::{nanoseconds, now_ns, tell, with};
use super::wire::Wire;
use crate::rng::Rng;

/// Place of the byte with the extensions in what a client sends: in its first frame, the bind of a
/// service with a name of five letters.
const FEATURES_AT: u64 = 18;

/// Ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

impl Side {
    pub(super) fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Wires {
    /// Bytes of the client, and bytes of the server.
    pipes: [Pipe; 2],
    /// Extensions that remain of those that the client tells.
    features: u8,
    pub(super) wire: Wire,
    /// Bytes that each side has sent and received.
    pub(super) moved: [u64; 2],
}

/// One direction.
#[derive(Debug)]
struct Pipe {
    segments: VecDeque<Segment>,
    /// Bytes that were written, that arrived, and that were read.
    written: u64,
    arrived: u64,
    read: u64,
    capacity: usize,
    /// Most bytes in the buffer at which it is writable again.
    low_water: usize,
    is_writer_open: bool,
    is_reader_open: bool,
    has_end_arrived: bool,
    /// Nothing arrives.
    is_stalled: bool,
    /// Events for a task that were not taken, and the tasks.
    read_edge: Edge,
    write_edge: Edge,
}

#[derive(Debug, Default)]
struct Edge {
    is_set: bool,
    waker: Option<Waker>,
}

/// Bytes of one call of `send`.
#[derive(Debug)]
struct Segment {
    bytes: VecDeque<u8>,
    fd: Option<OwnedFd>,
}

impl Edge {
    fn set(&mut self) -> Option<Waker> {
        self.is_set = true;
        self.waker.take()
    }
}

impl Pipe {
    fn new(capacity: usize, low_water: usize) -> Self {
        Self {
            segments: VecDeque::new(),
            written: 0,
            arrived: 0,
            read: 0,
            capacity,
            low_water,
            is_writer_open: true,
            is_reader_open: true,
            has_end_arrived: false,
            is_stalled: false,
            read_edge: Edge { is_set: true, waker: None },
            write_edge: Edge { is_set: true, waker: None },
        }
    }

    fn used(&self) -> usize {
        usize::try_from(self.written - self.read).expect("it is small")
    }

    fn is_readable(&self) -> bool {
        self.arrived > self.read || self.has_end_arrived
    }

    fn is_writable(&self) -> bool {
        !self.is_reader_open || !self.is_writer_open || self.used() <= self.low_water
    }

    fn has_more_to_deliver(&self) -> bool {
        self.arrived < self.written || !self.is_writer_open && !self.has_end_arrived
    }

    /// Ends the writer's side. The reader gets what was written, up to `last`.
    fn end(&mut self, last: u64) {
        self.is_writer_open = false;
        while self.written > last.max(self.arrived) {
            let Some(segment) = self.segments.back_mut() else { break };
            segment.bytes.pop_back();
            self.written -= 1;
            if segment.bytes.is_empty() {
                self.segments.pop_back();
            }
        }
    }

    /// Ends the reader's side.
    fn close_reader(&mut self) -> Option<Waker> {
        self.is_reader_open = false;
        self.segments.clear();
        (self.arrived, self.read) = (self.written, self.written);
        self.write_edge.set()
    }
}

impl Wires {
    pub(super) fn new(wire: Wire, capacity: [usize; 2], low_water: [usize; 2], features: u8) -> Self {
        let pipe = |side: usize| Pipe::new(capacity[side], low_water[side].min(capacity[side] - 1));
        Self { pipes: [pipe(0), pipe(1)], features, wire, moved: [0; 2] }
    }

    /// Returns true if bytes of this side, or its end, have not arrived.
    pub(super) fn can_deliver(&self, from: Side) -> bool {
        let pipe = &self.pipes[from as usize];
        !pipe.is_stalled && pipe.is_reader_open && pipe.has_more_to_deliver()
    }

    pub(super) fn is_readable(&self, side: Side) -> bool {
        self.pipes[side.other() as usize].is_readable()
    }

    pub(super) fn is_writable(&self, side: Side) -> bool {
        self.pipes[side as usize].is_writable()
    }

    pub(super) fn set_stalled(&mut self, from: Side, is_stalled: bool) {
        self.pipes[from as usize].is_stalled = is_stalled;
    }

    /// Returns the number of bytes that were sent and have not arrived.
    pub(super) fn under_way(&self, from: Side) -> u64 {
        let pipe = &self.pipes[from as usize];
        pipe.written - pipe.arrived
    }
}

/// Lets bytes of one side arrive, or its end if there are none.
pub(super) fn deliver(connection: usize, from: Side, bytes: u64) {
    let waker = with(|shared| {
        let pipe = &mut shared.wires[connection].pipes[from as usize];
        let left = pipe.written - pipe.arrived;
        if left == 0 {
            pipe.has_end_arrived = !pipe.is_writer_open;
        }
        pipe.arrived += left.min(bytes);
        pipe.read_edge.set()
    });
    tell!("connection {connection}: {bytes} bytes of the {from:?} arrive");
    waker.into_iter().for_each(Waker::wake);
}

/// Lets everything pass from now on.
pub(super) fn open_wide(connection: usize) {
    let wakers = with(|shared| {
        let open = |pipe: &mut Pipe| {
            pipe.is_stalled = false;
            pipe.capacity = pipe.capacity.max(1 << 20);
            pipe.low_water = pipe.low_water.max(1 << 19);
            pipe.write_edge.set()
        };
        shared.wires[connection].pipes.each_mut().map(open)
    });
    wakers.into_iter().flatten().for_each(Waker::wake);
}

/// Cuts a connection. Of the bytes under way, so many arrive.
pub(super) fn cut(connection: usize, kept: [u64; 2]) {
    tell!("connection {connection} is cut");
    let wakers = with(|shared| {
        let mut wakers = Vec::new();
        let wires = &mut shared.wires[connection];
        for (pipe, kept) in wires.pipes.iter_mut().zip(kept) {
            pipe.end(pipe.arrived + kept);
            // The other end is told by its next `send`.
            wakers.extend(pipe.write_edge.set());
        }
        wires.wire.is_cut = true;
        wakers
    });
    wakers.into_iter().for_each(Waker::wake);
}

/// One end of a connection, for the library and for hostile peers.
#[derive(Debug)]
pub(super) struct End {
    run: u64,
    connection: usize,
    side: Side,
}

impl End {
    pub(super) fn new(connection: usize, side: Side) -> Self {
        Self { run: with(|shared| shared.run), connection, side }
    }

    pub(super) fn into_stream(self) -> Stream {
        Stream::simulated(Box::new(self))
    }

    /// Runs a function unless the run is over, or has found something.
    fn with<T>(&self, run: impl FnOnce(&mut Wires, &mut Rng) -> T) -> Option<T> {
        let has_found = std::thread::panicking();
        with(|shared| {
            (shared.run == self.run && !has_found).then(|| run(&mut shared.wires[self.connection], &mut shared.rng))
        })
    }

    fn take(&self, bytes: &[u8], fd: Option<BorrowedFd<'_>>) -> Result<usize, Error> {
        let (side, at) = (self.side, self.side as usize);
        let taken = self.with(|wires, rng| {
            let Wires { pipes, features, wire, moved } = wires;
            let pipe = &mut pipes[at];
            if !pipe.is_writer_open || !pipe.is_reader_open {
                return Err(Error::Disconnected);
            }
            let room = pipe.capacity.saturating_sub(pipe.used());
            let mut len = bytes.len().min(room);
            if len == 0 {
                // A real socket tells when there is room again.
                pipe.write_edge.is_set = false;
                return Ok(0);
            }
            if rng.one_in(4) {
                len = rng.between(1, len as u64) as usize;
            }
            let mut bytes = bytes[..len].to_vec();
            if let (true, Some(index)) = (side == Side::Client, FEATURES_AT.checked_sub(pipe.written)) {
                if let Some(byte) = bytes.get_mut(index as usize).filter(|_| wire.is_honest(Side::Client)) {
                    assert_eq!(*byte, 31, "the simulator knows where the extensions are");
                    *byte &= *features;
                }
            }
            wire.sent(side, pipe.written, &bytes, fd.is_some());
            let fd = fd.map(|fd| fd.try_clone_to_owned().expect("the process has descriptors left"));
            pipe.segments.push_back(Segment { bytes: bytes.into(), fd });
            pipe.written += len as u64;
            moved[at] += len as u64;
            Ok(len)
        });
        taken.unwrap_or(Err(Error::Disconnected))
    }

    fn close(&self) {
        let (side, at) = (self.side, self.side as usize);
        let wakers = self.with(|wires, _| {
            let own = &mut wires.pipes[at];
            let written = own.written;
            own.end(written);
            [wires.pipes[side.other() as usize].close_reader(), None]
        });
        wakers.into_iter().flatten().flatten().for_each(Waker::wake);
    }
}

impl Link for End {
    fn send(&self, bytes: &[u8], fd: Option<BorrowedFd<'_>>) -> Result<usize, Error> {
        let sent = self.take(bytes, fd.as_ref().map(AsFd::as_fd));
        tell!("connection {}: the {:?} sends {} bytes: {sent:?}", self.connection, self.side, bytes.len());
        sent
    }

    fn recv(&self, buf: &mut [u8]) -> Option<(usize, Option<OwnedFd>)> {
        let from = self.side.other();
        let (received, waker) = self.with(|wires, _| {
            let Wires { pipes, wire, moved, .. } = wires;
            let pipe = &mut pipes[from as usize];
            if !pipe.is_reader_open {
                return (Some((0, None)), None);
            }
            let (mut len, mut fd) = (0, None);
            let available = (pipe.arrived - pipe.read).min(buf.len() as u64) as usize;
            // As the kernel does: a descriptor comes with its first byte, and ends the call.
            while len < available && fd.is_none() {
                let segment = pipe.segments.front_mut().expect("it has the bytes");
                fd = segment.fd.take();
                let part = segment.bytes.len().min(available - len);
                for (to, byte) in buf[len..].iter_mut().zip(segment.bytes.drain(..part)) {
                    *to = byte;
                }
                len += part;
                if segment.bytes.is_empty() {
                    pipe.segments.pop_front();
                }
            }
            if len == 0 {
                return ((pipe.has_end_arrived).then_some((0, None)), None);
            }
            let was_writable = pipe.is_writable();
            pipe.read += len as u64;
            moved[self.side as usize] += len as u64;
            wire.received(from, pipe.read);
            let waker = if !was_writable && pipe.is_writable() { pipe.write_edge.set() } else { None };
            (Some((len, fd)), waker)
        })?;
        tell!("connection {}: the {:?} receives {received:?} of {}", self.connection, self.side, buf.len());
        waker.into_iter().for_each(Waker::wake);
        received
    }

    fn shutdown(&self) {
        tell!("connection {}: the {:?} ends it", self.connection, self.side);
        self.close();
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.close();
    }
}

/// Edge-triggered events of one end, as a runtime reports them.
#[derive(Debug)]
pub(super) struct Events {
    connection: usize,
    side: Side,
}

impl Events {
    pub(super) fn new(connection: usize, side: Side) -> Self {
        Self { connection, side }
    }

    fn poll(&self, cx: &Context<'_>, edge: impl FnOnce(&mut [Pipe; 2]) -> (&mut Edge, bool)) -> Poll<()> {
        with(|shared| {
            let (edge, is_at_end) = edge(&mut shared.wires[self.connection].pipes);
            if std::mem::take(&mut edge.is_set) || is_at_end {
                return Poll::Ready(());
            }
            edge.waker = Some(cx.waker().clone());
            Poll::Pending
        })
    }
}

impl Readiness for Events {
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let from = self.side.other() as usize;
        self.poll(cx, |pipes| {
            let is_at_end = pipes[from].has_end_arrived && pipes[from].arrived == pipes[from].read;
            (&mut pipes[from].read_edge, is_at_end)
        })
        .map(Ok)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let at = self.side as usize;
        self.poll(cx, |pipes| {
            let is_gone = !pipes[at].is_reader_open;
            (&mut pipes[at].write_edge, is_gone)
        })
        .map(Ok)
    }

    fn poll_sleep_until(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let deadline_ns = nanoseconds(deadline);
        if deadline_ns <= now_ns() {
            return Poll::Ready(());
        }
        with(|shared| {
            let is_known = |waker: &Waker| waker.will_wake(cx.waker());
            let mut at = shared.timers.range((deadline_ns, 0)..=(deadline_ns, u64::MAX));
            if !at.any(|(_, waker)| is_known(waker)) {
                shared.add_timer(deadline_ns, cx.waker().clone());
            }
        });
        Poll::Pending
    }
}
