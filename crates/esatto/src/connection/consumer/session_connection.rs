//! Sessions of this program and their connections.

use std::time::Instant;

use super::protocol::{Command, Consumer, Tag};
use crate::connection::service_address::Place;
use crate::connection::transport::{
    AnyTransport, CONSUMER_PORT, InProcess, InProcessTransport, Port, SocketTransport, TransportEvent,
};
use crate::error::Error;
use crate::os::{Interest, TransportError, connect_error};

/// A session, as the control thread uses it.
pub(crate) trait LiveSession: Send {
    fn command(&mut self, command: Command, now: Instant);

    fn close(self: Box<Self>, in_process: &mut InProcess);

    fn interest(&self) -> Option<Interest<'_>>;

    /// Returns when to pump, if nothing happens before.
    fn next_deadline(&self) -> Option<Instant>;

    /// Does all work that is possible now. Returns whether there may be more to do.
    fn pump(&mut self, now: Instant, in_process: &mut InProcess) -> bool;
}

pub(crate) struct SessionConnection {
    consumer: Consumer,
    /// `None` once the connection is lost.
    link: Option<AnyTransport<Tag>>,
    ready: bool,
}

impl SessionConnection {
    /// Connects. Commands wait until the connection is established. A failure is reported like a
    /// connection that breaks later.
    pub(crate) fn open(place: &Place, in_process: &mut InProcess) -> Self {
        let mut consumer = Consumer::new(Instant::now());
        let (link, ready) = match place {
            Place::Socket(socket) => match SocketTransport::connect(socket, CONSUMER_PORT) {
                Ok(link) => (Some(AnyTransport::Socket(Box::new(link))), false),
                Err(error) => {
                    consumer.disconnected(connect_error::consumer_error(&error));
                    (None, false)
                }
            },
            // Such sockets are for producers only.
            Place::Delivered(_) => {
                consumer.disconnected(Error::disconnected("its address is unknown"));
                (None, false)
            }
            Place::Here(start) => {
                let service = in_process.get_or_insert_with(start);
                (Some(AnyTransport::InProcess(InProcessTransport::connect(&mut **service, Port::Consumer))), true)
            }
        };
        Self { consumer, link, ready }
    }

    /// Makes a session without a service.
    pub(crate) fn refused(error: Error) -> Self {
        let mut consumer = Consumer::new(Instant::now());
        consumer.disconnected(error);
        Self { consumer, link: None, ready: false }
    }

    fn transfer(&mut self, in_process: &mut InProcess) -> Result<bool, TransportError> {
        let Self { consumer, link, ready } = self;
        let Some(link) = link else { return Ok(false) };
        match link {
            AnyTransport::Socket(link) => {
                // If the reader has to catch up, the service waits.
                if !consumer.is_paused() {
                    let open = link.pump(|event| match event {
                        TransportEvent::Ready => *ready = true,
                        TransportEvent::Reply(tag, reply) => consumer.reply(*tag, &reply),
                    })?;
                    if !open {
                        return Err(TransportError::Disconnected);
                    }
                }
                // A rejected call may lead to further calls.
                while *ready && consumer.has_calls() {
                    for call in consumer.take_calls() {
                        if let Some(tag) = link.invoke(call)? {
                            consumer.rejected(tag);
                        }
                    }
                }
                link.flush()?;
                Ok(false)
            }
            AnyTransport::InProcess(link) => {
                let Some(service) = in_process.as_deref_mut() else { return Ok(false) };
                let mut busy = !consumer.is_paused()
                    && link.pump(service, |event| match event {
                        TransportEvent::Ready => {}
                        TransportEvent::Reply(tag, reply) => consumer.reply(*tag, &reply),
                    });
                for call in consumer.take_calls() {
                    busy = true;
                    if let Some(tag) = link.invoke(service, call) {
                        consumer.rejected(tag);
                    }
                }
                Ok(busy)
            }
        }
    }
}

impl LiveSession for SessionConnection {
    fn command(&mut self, command: Command, now: Instant) {
        self.consumer.expire(now);
        self.consumer.command(command);
    }

    fn close(mut self: Box<Self>, in_process: &mut InProcess) {
        if let (Some(AnyTransport::InProcess(link)), Some(service)) = (&mut self.link, in_process.as_mut()) {
            link.disconnect(&mut **service);
        }
    }

    fn interest(&self) -> Option<Interest<'_>> {
        let interest = self.link.as_ref().and_then(AnyTransport::interest)?;
        // If the socket is not to be read, the control thread must not wait for it: its end would
        // wake the thread again and again.
        let is_of_interest = !self.consumer.is_paused() || interest.wants_write();
        is_of_interest.then_some(interest)
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.consumer.next_deadline()
    }

    fn pump(&mut self, now: Instant, in_process: &mut InProcess) -> bool {
        self.consumer.expire(now);
        match self.transfer(in_process) {
            Ok(busy) => busy,
            Err(error) => {
                self.link = None;
                self.consumer.disconnected(Error::disconnected(&error.to_string()));
                false
            }
        }
    }
}
