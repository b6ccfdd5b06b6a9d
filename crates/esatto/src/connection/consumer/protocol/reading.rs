//! The transfer of a trace from the service to its reader, and the commands that wait for its end.

use core::mem;

use esatto_ports::consumer_port::method;
use esatto_protozero::wire;
use esatto_schema::ReadBuffersResponseReader;

use super::timeouts::PATIENCE;
use super::{Command, Consumer, Kind, Tag, refuse};
use crate::connection::consumer::chunks::ChunkSender;
use crate::connection::pending_operation::Completer;
use crate::connection::transport::Reply;
use crate::error::Error;

/// Larger packets cannot be encoded (`docs/spec/protozero.md` §2), so the service is at fault.
const MAX_PACKET_BYTES: usize = 1 << 28;

/// A function that gets whole packets.
type ChunkFunction = Box<dyn FnMut(&[u8]) + Send>;

/// The destination of the trace.
pub(crate) enum Sink {
    /// The answer of the operation.
    Answer(Vec<u8>),
    /// A reader on another thread or in a task.
    Queue(ChunkSender),
    /// A function that the control thread calls.
    Function(ChunkFunction),
}

impl core::fmt::Debug for Sink {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Answer(_) => "Answer",
            Self::Queue(_) => "Queue",
            Self::Function(_) => "Function",
        })
    }
}

/// A `ReadBuffers` call in progress.
#[derive(Debug)]
pub(super) struct Reading {
    sink: Sink,
    /// `None`: the reader has given up, but the service still sends.
    done: Option<Completer>,
    /// Slices of a packet whose end has not arrived.
    packet: Vec<u8>,
}

impl Reading {
    pub(super) const fn new(sink: Sink, done: Completer) -> Self {
        Self { sink, done: Some(done), packet: Vec::new() }
    }

    pub(super) fn is_paused(&self) -> bool {
        matches!(&self.sink, Sink::Queue(queue) if queue.is_full())
    }

    /// Returns whether the reader does not want the rest.
    pub(super) fn is_abandoned(&self) -> bool {
        self.done.is_none() || matches!(&self.sink, Sink::Queue(queue) if queue.is_abandoned())
    }

    pub(super) fn end(mut self, result: Result<(), Error>) {
        self.tell_end(result);
    }

    fn tell_end(&mut self, result: Result<(), Error>) {
        if let Sink::Queue(queue) = &self.sink {
            queue.end(result.clone());
        }
        let Some(done) = self.done.take() else { return };
        let bytes = match &mut self.sink {
            Sink::Answer(bytes) => mem::take(bytes),
            Sink::Queue(_) | Sink::Function(_) => Vec::new(),
        };
        done.complete(result.map(|()| bytes));
    }

    /// Takes slices; fails if they do not form packets.
    fn take(&mut self, body: &[u8]) -> Result<(), Error> {
        let mut trace = Vec::new();
        for slice in ReadBuffersResponseReader::new(body).slices() {
            self.packet.extend_from_slice(slice.data().unwrap_or_default());
            if self.packet.len() > MAX_PACKET_BYTES {
                return Err(Error::session("the service sends a packet of more than 256 MiB"));
            }
            if slice.last_slice_for_packet().unwrap_or(false) {
                append_packet(&mut trace, &self.packet);
                self.packet.clear();
            }
        }
        if trace.is_empty() || self.done.is_none() {
            return Ok(());
        }
        match &mut self.sink {
            Sink::Answer(bytes) => bytes.extend_from_slice(&trace),
            Sink::Queue(queue) => queue.push(trace),
            Sink::Function(function) => crate::callbacks::shielded(|| function(&trace)),
        }
        Ok(())
    }
}

impl Consumer {
    /// Parks a command that cannot be executed until the rest of an abandoned trace has arrived,
    /// and each command after it. Returns any other command.
    ///
    /// A second reader of a trace that is not abandoned does not wait: [`read`](Self::read) refuses
    /// it.
    pub(super) fn park(&mut self, command: Command) -> Option<Command> {
        let waits = matches!(command, Command::SetUp(..) | Command::Clone { .. } | Command::Read(..));
        let is_in_the_way = waits && self.reading.as_ref().is_some_and(Reading::is_abandoned);
        if !is_in_the_way && self.parked.is_empty() {
            return Some(command);
        }
        self.watch_reading();
        self.parked.push(command);
        None
    }

    /// Executes the commands that had to wait, until one has to wait again.
    fn unpark(&mut self) {
        for command in mem::take(&mut self.parked) {
            self.command(command);
        }
    }

    pub(super) fn refuse_parked(&mut self, error: &Error) {
        for command in mem::take(&mut self.parked) {
            refuse(command, error.clone());
        }
    }

    pub(super) fn read(&mut self, sink: Sink, done: Completer) {
        if self.reading.is_some() {
            // Two streams at once would be mixed up (`docs/spec/wire-protocol.md` §13).
            return Reading::new(sink, done).end(Err(Error::state("the trace is being read already")));
        }
        self.watch_reading();
        self.reading = Some(Reading::new(sink, done));
        self.push::<method::ReadBuffers>(Vec::new(), Tag::Read);
    }

    /// Starts a time limit for the rest of an abandoned trace.
    fn watch_reading(&mut self) {
        if self.operations.first(Kind::Read).is_none() {
            // Nothing waits for this operation: the reading reports its own end.
            let (_, watched) = crate::connection::pending_operation::Pending::<()>::new(|_| Ok(()));
            self.operations.add(Kind::Read, watched, self.now + PATIENCE);
        }
    }

    pub(super) fn data(&mut self, reply: &Reply<'_>) {
        let Some(reading) = &mut self.reading else { return };
        let taken = reading.take(reply.body);
        if let Err(error) = taken {
            self.abandon_read(&error);
        }
        if reply.has_more {
            return self.operations.extend(Kind::Read, self.now + PATIENCE);
        }
        self.operations.end_all(Kind::Read, &Ok(()));
        if let Some(reading) = self.reading.take() {
            let rejected = || Error::session("the service refuses to return the trace");
            reading.end(if reply.success { Ok(()) } else { Err(rejected()) });
        }
        self.unpark();
    }

    /// Gives up the rest. Until the service has sent it, nothing else can be read.
    pub(super) fn abandon_read(&mut self, error: &Error) {
        if let Some(reading) = &mut self.reading {
            reading.tell_end(Err(error.clone()));
        }
    }
}

/// Appends a packet as trace files contain it: `Trace.packet`, with the shortest length.
fn append_packet(trace: &mut Vec<u8>, packet: &[u8]) {
    const TAG: u8 = wire::tag(1, wire::WireType::LengthDelimited) as u8;
    let mut length = [0; wire::MAX_VARINT_SIZE];
    let n = wire::encode_varint(packet.len() as u64, &mut length);
    trace.push(TAG);
    trace.extend_from_slice(&length[..n]);
    trace.extend_from_slice(packet);
}
