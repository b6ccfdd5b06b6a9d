//! A producer and the connection it has, wants or has lost (`docs/spec/client-library.md` §4).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use esatto_ipc::Address;
use esatto_schema::producer_port;
use esatto_shm::FlushCallback;
use rustix::event::PollFlags;
use rustix::fs::inotify;

use super::link::{Link, LinkEvent, SocketLink};
use super::producer::{Identity, Producer, Tag};
use super::{Place, Surroundings, Waker};

/// Each wait for a missing service is longer than the one before by this much …
const RETRY_STEP: Duration = Duration::from_secs(1);
/// … until it reaches this …
const RETRY_STEPS_UNTIL: Duration = Duration::from_secs(10);
/// … and this from then on.
const RETRY_AT_LAST: Duration = Duration::from_secs(30);
/// A connection that lasted as long as this is renewed at once when it breaks.
const WORKED: Duration = Duration::from_secs(1);
/// A socket file appears a moment before its service listens.
const RETRY_AFTER_CHANGE: Duration = Duration::from_millis(10);

pub(crate) struct ProducerLink {
    place: Place,
    producer: Producer,
    link: Option<Link<Tag>>,
    ready: bool,
    connected_at: Instant,
    /// When to try to connect; meaningful without link.
    retry_at: Instant,
    delay: Duration,
    /// Watches the directory of the socket.
    watch: Option<OwnedFd>,
}

impl ProducerLink {
    pub(crate) fn new(place: Place, identity: Identity, waker: Waker) -> Self {
        Self {
            place,
            producer: Producer::new(identity, waker),
            link: None,
            ready: false,
            connected_at: Instant::now(),
            retry_at: Instant::now(),
            delay: Duration::ZERO,
            watch: None,
        }
    }

    pub(crate) const fn place(&self) -> &Place {
        &self.place
    }

    /// See [`Producer::flush`].
    pub(crate) fn flush(&mut self, done: FlushCallback) {
        self.producer.flush(done);
    }

    pub(crate) fn poll_interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match (&self.link, &self.watch) {
            (Some(link), _) => link.poll_interest(),
            (None, Some(watch)) => Some((watch.as_fd(), PollFlags::IN)),
            (None, None) => None,
        }
    }

    /// When to pump again, if nothing happens before.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        self.link.is_none().then_some(self.retry_at)
    }

    /// Does what can be done now. Returns whether there may be more.
    pub(crate) fn pump(&mut self, now: Instant, around: &mut Surroundings<'_>) -> bool {
        self.drain_watch(now);
        if self.link.is_none() && now >= self.retry_at {
            self.connect(now, around);
        }
        let result = self.transfer(around);
        let failure = self.producer.take_failure();
        match (result, failure) {
            (Ok(busy), None) => busy,
            _ => {
                self.disconnected(now, around);
                true
            }
        }
    }

    fn connect(&mut self, now: Instant, _around: &mut Surroundings<'_>) {
        self.connected_at = now;
        match &self.place {
            Place::Socket(address) => {
                // Before the attempt: a service that starts between the two is noticed.
                if self.watch.is_none() {
                    self.watch = watch_directory(address);
                }
                match SocketLink::connect(address, producer_port::SERVICE) {
                    Ok(link) => {
                        self.link = Some(Link::Socket(Box::new(link)));
                        self.watch = None;
                    }
                    Err(_) => self.retry_later(now),
                }
            }
            #[cfg(feature = "in-process")]
            Place::Here(start) => {
                let service = _around.local.get_or_insert_with(start);
                self.link =
                    Some(Link::Local(super::local::LocalLink::connect(&mut **service, super::local::Port::Producer)));
                self.ready = true;
                self.producer.connected();
            }
        }
    }

    fn retry_later(&mut self, now: Instant) {
        self.delay = if self.delay < RETRY_STEPS_UNTIL { self.delay + RETRY_STEP } else { RETRY_AT_LAST };
        self.retry_at = now + self.delay;
    }

    /// Something changed in the directory of the socket: it may be there now.
    fn drain_watch(&mut self, now: Instant) {
        let Some(watch) = &self.watch else { return };
        let mut events = [0_u8; 4096];
        let mut changed = false;
        while matches!(rustix::io::read(watch, &mut events), Ok(n) if n > 0) {
            changed = true;
        }
        if changed {
            self.retry_at = self.retry_at.min(now + RETRY_AFTER_CHANGE);
        }
    }

    /// Moves calls out and replies in.
    fn transfer(&mut self, around: &mut Surroundings<'_>) -> Result<bool, esatto_ipc::Error> {
        let Self { producer, link, ready, .. } = self;
        let Some(link) = link else { return Ok(false) };
        let _ = &around;
        match link {
            Link::Socket(link) => {
                let open = link.pump(|event| match event {
                    LinkEvent::Ready => {
                        *ready = true;
                        producer.connected();
                    }
                    LinkEvent::Reply(tag, reply) => producer.reply(tag, reply),
                })?;
                if !open {
                    return Err(esatto_ipc::Error::Disconnected);
                }
                if *ready {
                    producer.pump(link.is_congested());
                    for call in producer.take_calls() {
                        link.invoke(call)?;
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
                    LinkEvent::Reply(tag, reply) => producer.reply(tag, reply),
                });
                producer.pump(false);
                for call in producer.take_calls() {
                    busy = true;
                    link.invoke(service, call);
                }
                Ok(busy)
            }
        }
    }

    fn disconnected(&mut self, now: Instant, _around: &mut Surroundings<'_>) {
        #[cfg(feature = "in-process")]
        if let (Some(Link::Local(link)), Some(service)) = (&self.link, _around.local.as_mut()) {
            link.disconnect(&mut **service);
        }
        self.link = None;
        self.watch = self.place.address().and_then(watch_directory);
        self.producer.disconnected();
        if self.ready && now.saturating_duration_since(self.connected_at) >= WORKED {
            self.delay = Duration::ZERO;
            self.retry_at = now;
        } else {
            self.retry_later(now);
        }
        self.ready = false;
    }
}

/// Watches for a socket file that appears. `None` for sockets without a file, or where that cannot be had.
fn watch_directory(address: &Address) -> Option<OwnedFd> {
    let Address::Path(path) = address else { return None };
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or_else(|| std::path::Path::new("."));
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).ok()?;
    let changes = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::ATTRIB;
    inotify::add_watch(&watch, directory, changes).ok()?;
    Some(watch)
}
