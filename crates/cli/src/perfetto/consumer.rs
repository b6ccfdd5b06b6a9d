//! Connection to the service, with the signals that end the command.

use core::time::Duration;
use std::io;
use std::time::Instant;

use esatto_ipc::blocking_client::Reply;
use esatto_ipc::{Address, BlockingClient, Error as IpcError, RequestId};
use esatto_ports::Rpc;
use esatto_ports::consumer_port::method;
use esatto_schema::{ReadBuffersRequest, ReadBuffersResponseReader};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::log_line::log_line;
use super::outcome::Outcome;
use super::output_file::OutputFile;
use crate::service_connection;
use crate::stop_signal::StopSignal;
use crate::trace_output::MAX_PACKET_BYTES;

/// Longest time without a part of the trace while it is read.
const READ_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection to the consumer port.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) client: BlockingClient,
    /// `None` if signals act on the process.
    stop: Option<StopSignal>,
    is_stopping: bool,
}

/// Something that a consumer waits for.
#[derive(Debug)]
pub(crate) enum Event {
    Reply(Reply),
    /// The first SIGINT, SIGTERM or SIGHUP.
    Stop,
    Timeout,
}

impl Consumer {
    /// Connects to the service. Says why, if that fails.
    pub(crate) fn connect(address: &Address, stop: Option<StopSignal>) -> Result<Self, Outcome> {
        match service_connection::connect(address) {
            Ok(client) => Ok(Self { client, stop, is_stopping: false }),
            Err(failure) => {
                log_line!(
                    "Could not connect to the traced socket {address}. Ensure traced is running or use tracebox: \
                     {failure}"
                );
                Err(Outcome::Failed)
            }
        }
    }

    /// Sends a request without content.
    pub(crate) fn send<M: Rpc>(&mut self) -> Result<RequestId, Outcome> {
        self.send_message::<M>(&M::Request::default())
    }

    /// Sends a request. Says why, if that fails.
    pub(crate) fn send_message<M: Rpc>(&mut self, request: &M::Request) -> Result<RequestId, Outcome> {
        self.client.send_message::<M>(request, None).map_err(disconnected)
    }

    /// Waits for the next reply or signal, up to a deadline.
    pub(crate) fn next(&mut self, deadline: Option<Instant>) -> Result<Event, Outcome> {
        loop {
            if !self.is_stopping && self.stop.as_mut().is_some_and(StopSignal::received) {
                self.is_stopping = true;
                return Ok(Event::Stop);
            }
            if let Some(reply) = self.client.try_reply().map_err(disconnected)? {
                return Ok(Event::Reply(reply));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Event::Timeout);
            }
            self.wait(left)?;
        }
    }

    fn wait(&self, timeout: Option<Duration>) -> Result<(), Outcome> {
        let mut interest = PollFlags::IN;
        interest.set(PollFlags::OUT, self.client.connection().wants_write());
        let mut fds = vec![PollFd::new(&self.client, interest)];
        // After the first signal its descriptor has nothing more to say.
        fds.extend(self.stop.as_ref().filter(|_| !self.is_stopping).map(|stop| PollFd::new(stop, PollFlags::IN)));
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => {
                log_line!("Could not wait for the service: {}", io::Error::from(error));
                Err(Outcome::Failed)
            }
        }
    }

    /// Reads the buffers of the session into the file, and says how that ended.
    pub(crate) fn read_buffers(&mut self, output: &mut OutputFile) -> Outcome {
        let outcome = match self.copy_packets(output) {
            Ok(()) => Outcome::Done,
            Err(outcome) => outcome,
        };
        if let Err(error) = output.flush() {
            return not_written(output, &error);
        }
        log_line!("Wrote {} bytes into {}", output.written(), output.display());
        outcome
    }

    fn copy_packets(&mut self, output: &mut OutputFile) -> Result<(), Outcome> {
        let reading = self
            .client
            .send_message::<method::ReadBuffers>(&ReadBuffersRequest::default(), None)
            .map_err(disconnected)?;
        let mut packet = Vec::new();
        loop {
            let reply = match self.next(Some(Instant::now() + READ_TIMEOUT))? {
                Event::Reply(reply) if reply.request_id == reading => reply,
                // Late answers to other requests, or a signal: the trace is about to be complete.
                Event::Reply(_) | Event::Stop => continue,
                Event::Timeout => {
                    log_line!("The service delivered nothing for {} s; the trace ends here", READ_TIMEOUT.as_secs());
                    return Err(Outcome::Refused);
                }
            };
            for slice in ReadBuffersResponseReader::new(&reply.body).slices() {
                packet.extend_from_slice(slice.data().unwrap_or_default());
                if packet.len() > MAX_PACKET_BYTES {
                    log_line!("The service sent a packet of more than 256 MiB; the trace ends before it");
                    return Err(Outcome::Refused);
                }
                if slice.last_slice_for_packet().unwrap_or(false) {
                    output.packet(&packet).map_err(|error| not_written(output, &error))?;
                    packet.clear();
                }
            }
            if !reply.has_more {
                return Ok(());
            }
        }
    }
}

fn not_written(output: &OutputFile, error: &io::Error) -> Outcome {
    log_line!(
        "Failed to write packets into {}: {error}; it has the first {} bytes",
        output.display(),
        output.written()
    );
    Outcome::Refused
}

/// Says that the service has gone.
pub(crate) fn disconnected(error: IpcError) -> Outcome {
    match error {
        IpcError::Disconnected => log_line!("Disconnected from the traced service"),
        IpcError::NoSuchMethod(method) => log_line!("The traced service is too old: it has no {method}"),
        error => log_line!("Disconnected from the traced service: {error}"),
    }
    Outcome::Failed
}
