//! A session of this program and its connection.

use std::time::Instant;

use esatto_schema::consumer_port;

use super::protocol::{Command, Consumer, Tag};
use crate::connection::transport::{Link, LinkEvent, SocketLink};
use crate::connection::{Place, Surroundings};
use crate::error::Error;
use crate::os::{Interest, LinkError, connect_error};

/// What the control thread does with a session.
pub(crate) trait LiveSession: Send {
    fn command(&mut self, command: Command, now: Instant);

    fn close(self: Box<Self>, around: &mut Surroundings<'_>);

    fn interest(&self) -> Option<Interest<'_>>;

    /// When to pump, if nothing happens before.
    fn next_deadline(&self) -> Option<Instant>;

    /// Does what can be done now. Returns whether there may be more.
    fn pump(&mut self, now: Instant, around: &mut Surroundings<'_>) -> bool;
}

pub(crate) struct SessionLink {
    consumer: Consumer,
    /// `None` once the connection is lost.
    link: Option<Link<Tag>>,
    ready: bool,
}

impl SessionLink {
    /// Connects. What is asked for before that has come about waits. Failure is reported like a connection that breaks later.
    pub(crate) fn open(place: &Place, _around: &mut Surroundings<'_>) -> Self {
        let mut consumer = Consumer::new(Instant::now());
        let (link, ready) = match place {
            Place::Socket(socket) => match SocketLink::connect(socket, consumer_port::SERVICE) {
                Ok(link) => (Some(Link::Socket(Box::new(link))), false),
                Err(error) => {
                    consumer.disconnected(connect_error::consumer_error(&error));
                    (None, false)
                }
            },
            // Such sockets are for producers.
            Place::Delivered(_) => {
                consumer.disconnected(Error::disconnected("its address is not known"));
                (None, false)
            }
            #[cfg(feature = "in-process")]
            Place::Here(start) => {
                let service = _around.local.get_or_insert_with(start);
                (
                    Some(Link::Local(crate::connection::in_process::LocalLink::connect(
                        &mut **service,
                        crate::connection::in_process::Port::Consumer,
                    ))),
                    true,
                )
            }
        };
        Self { consumer, link, ready }
    }

    /// A session without a service.
    pub(crate) fn refused(error: Error) -> Self {
        let mut consumer = Consumer::new(Instant::now());
        consumer.disconnected(error);
        Self { consumer, link: None, ready: false }
    }

    fn transfer(&mut self, around: &mut Surroundings<'_>) -> Result<bool, LinkError> {
        let Self { consumer, link, ready } = self;
        let Some(link) = link else { return Ok(false) };
        let _ = &around;
        match link {
            Link::Socket(link) => {
                // A reader that has to catch up lets the service wait.
                if !consumer.is_paused() {
                    let open = link.pump(|event| match event {
                        LinkEvent::Ready => *ready = true,
                        LinkEvent::Reply(tag, reply) => consumer.reply(*tag, &reply),
                    })?;
                    if !open {
                        return Err(LinkError::Disconnected);
                    }
                }
                // What is rejected here may lead to further calls.
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
            #[cfg(feature = "in-process")]
            Link::Local(link) => {
                let Some(service) = around.local.as_deref_mut() else { return Ok(false) };
                let mut busy = !consumer.is_paused()
                    && link.pump(service, |event| match event {
                        LinkEvent::Ready => {}
                        LinkEvent::Reply(tag, reply) => consumer.reply(*tag, &reply),
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

impl LiveSession for SessionLink {
    fn command(&mut self, command: Command, now: Instant) {
        self.consumer.expire(now);
        self.consumer.command(command);
    }

    fn close(self: Box<Self>, _around: &mut Surroundings<'_>) {
        #[cfg(feature = "in-process")]
        if let (Some(Link::Local(link)), Some(service)) = (&self.link, _around.local.as_mut()) {
            link.disconnect(&mut **service);
        }
    }

    fn interest(&self) -> Option<Interest<'_>> {
        let interest = self.link.as_ref().and_then(Link::interest)?;
        // A socket that is not to be read must not be waited for either: its end would be told again and again.
        let is_of_interest = !self.consumer.is_paused() || interest.wants_write();
        is_of_interest.then_some(interest)
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.consumer.next_deadline()
    }

    fn pump(&mut self, now: Instant, around: &mut Surroundings<'_>) -> bool {
        self.consumer.expire(now);
        match self.transfer(around) {
            Ok(busy) => busy,
            Err(error) => {
                self.link = None;
                self.consumer.disconnected(Error::disconnected(&error.to_string()));
                false
            }
        }
    }
}
