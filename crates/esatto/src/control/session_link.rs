//! A session of this program and its connection.

use std::os::fd::BorrowedFd;
use std::sync::mpsc::Sender;

use esatto_schema::consumer_port;
use rustix::event::PollFlags;

use super::consumer::{Command, Consumer, Event, Tag};
use super::link::{Link, LinkEvent, SocketLink};
use super::{Place, Surroundings};

pub(crate) struct SessionLink {
    consumer: Consumer,
    /// `None` once the connection is lost.
    link: Option<Link<Tag>>,
    ready: bool,
}

impl SessionLink {
    /// Connects. Failure is reported as an event, like a connection that breaks later.
    pub(crate) fn open(place: &Place, events: Sender<Event>, _around: &mut Surroundings<'_>) -> Self {
        let mut consumer = Consumer::new(events);
        let (link, ready) = match place {
            Place::Socket(address) => match SocketLink::connect(address, consumer_port::SERVICE) {
                Ok(link) => (Some(Link::Socket(Box::new(link))), false),
                Err(error) => {
                    consumer.disconnected(error.to_string());
                    (None, false)
                }
            },
            #[cfg(feature = "in-process")]
            Place::Here(start) => {
                let service = _around.local.get_or_insert_with(start);
                (
                    Some(Link::Local(super::local::LocalLink::connect(&mut **service, super::local::Port::Consumer))),
                    true,
                )
            }
        };
        Self { consumer, link, ready }
    }

    pub(crate) fn command(&mut self, command: Command) {
        self.consumer.command(command);
    }

    pub(crate) fn close(self, _around: &mut Surroundings<'_>) {
        #[cfg(feature = "in-process")]
        if let (Some(Link::Local(link)), Some(service)) = (&self.link, _around.local.as_mut()) {
            link.disconnect(&mut **service);
        }
    }

    pub(crate) fn poll_interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        self.link.as_ref().and_then(Link::poll_interest)
    }

    /// Does what can be done now. Returns whether there may be more.
    pub(crate) fn pump(&mut self, around: &mut Surroundings<'_>) -> bool {
        match self.transfer(around) {
            Ok(busy) => busy,
            Err(error) => {
                self.link = None;
                self.consumer.disconnected(error.to_string());
                false
            }
        }
    }

    fn transfer(&mut self, around: &mut Surroundings<'_>) -> Result<bool, esatto_ipc::Error> {
        let Self { consumer, link, ready } = self;
        let Some(link) = link else { return Ok(false) };
        let _ = &around;
        match link {
            Link::Socket(link) => {
                let open = link.pump(|event| match event {
                    LinkEvent::Ready => *ready = true,
                    LinkEvent::Reply(tag, reply) => consumer.reply(*tag, &reply),
                })?;
                if !open {
                    return Err(esatto_ipc::Error::Disconnected);
                }
                if *ready {
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
                let mut busy = link.pump(service, |event| match event {
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
