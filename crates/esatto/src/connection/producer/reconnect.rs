//! A producer whose lost connections are renewed (`docs/spec/client-library.md` §4).

use core::mem;
use std::time::{Duration, Instant};

use esatto_shm::FlushCallback;

use super::protocol::{Identity, Tag};
use super::service_instances::{Producer, Unreached};
use super::startup_instances::StartupRequest;
use crate::connection::service_address::Place;
use crate::connection::transport::{
    AnyTransport, InProcess, InProcessTransport, PRODUCER_PORT, Port, SocketTransport, TransportEvent,
};
use crate::os::{DirectoryWatch, Interest, OwnedFd, TransportError, Waker};

/// Each wait for a missing service is longer than the previous one by this much …
const RETRY_STEP: Duration = Duration::from_secs(1);
/// … until it reaches this …
const RETRY_STEPS_UNTIL: Duration = Duration::from_secs(10);
/// … and then is always this.
const RETRY_AT_LAST: Duration = Duration::from_secs(30);
/// A broken connection is renewed, but not sooner than this after its begin. After short
/// connections the wait is multiplied by the number of short ones in a row, up to
/// [`RETRY_AT_LAST`]. So a service that always hangs up costs almost nothing, and is never given
/// up.
const RENEWAL: Duration = Duration::from_secs(1);
/// A connection that lasted less than this is short.
const SHORT: Duration = Duration::from_secs(10);
/// Changes in the directory of the socket end a wait early, because the service may have been
/// restarted. After this many short connections in a row they no longer do, because a process that
/// writes to the directory could keep this one busy.
const MAX_HASTY_RENEWALS: u32 = 128;
/// A socket file appears a moment before its service listens.
const RETRY_AFTER_CHANGE: Duration = Duration::from_millis(10);

pub(crate) struct ReconnectingProducer {
    place: Place,
    producer: Producer,
    link: Option<AnyTransport<Tag>>,
    ready: bool,
    connected_at: Instant,
    /// When to try to connect; has no meaning while connected.
    retry_at: Instant,
    delay: Duration,
    /// The last attempt to connect failed, and none has begun since.
    has_failed: bool,
    /// The number of a socket that was requested and not delivered yet.
    awaited: Option<u64>,
    /// Short connections in a row.
    short: u32,
    /// The service refuses memory of this process.
    refuses_memory: bool,
    /// Watches the directory of the socket.
    watch: Option<DirectoryWatch>,
}

impl ReconnectingProducer {
    pub(crate) fn new(place: Place, identity: Identity, waker: Waker) -> Self {
        Self {
            producer: Producer::new(identity, place.backend(), waker),
            place,
            link: None,
            ready: false,
            connected_at: Instant::now(),
            retry_at: Instant::now(),
            delay: Duration::ZERO,
            has_failed: false,
            awaited: None,
            short: 0,
            refuses_memory: false,
            watch: None,
        }
    }

    pub(crate) const fn place(&self) -> &Place {
        &self.place
    }

    /// See [`Producer::flush`].
    pub(crate) fn flush(&mut self, done: FlushCallback, is_last: bool) {
        self.producer.flush(done, is_last, !self.has_failed);
    }

    /// As [`Producer::sync`], unless the service cannot be reached: then `done` is dropped.
    pub(crate) fn sync_connecting(&mut self, done: FlushCallback) {
        if !self.has_failed {
            self.producer.sync(done, Unreached::Forget);
        }
    }

    pub(crate) fn interest(&self) -> Option<Interest<'_>> {
        match (&self.link, &self.watch) {
            (Some(link), _) => link.interest(),
            (None, Some(watch)) => Some(watch.interest()),
            (None, None) => None,
        }
    }

    /// Returns the producer of this connection.
    pub(crate) const fn producer(&mut self) -> &mut Producer {
        &mut self.producer
    }

    /// Returns when to pump again, if nothing happens before.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let retry = self.wants_link().then_some(self.retry_at);
        [retry, self.producer.deadline()].into_iter().flatten().min()
    }

    /// Takes the answer to a request for a socket, if the request came from this connection.
    pub(crate) fn deliver(&mut self, number: u64, socket: &mut Option<OwnedFd>, now: Instant) {
        if self.awaited.take_if(|awaited| *awaited == number).is_none() {
            return;
        }
        match socket.take().and_then(|socket| SocketTransport::adopt(socket, PRODUCER_PORT).ok()) {
            Some(link) => {
                self.connected_at = now;
                self.link = Some(AnyTransport::Socket(Box::new(link)));
            }
            None => self.retry_later(now),
        }
    }

    fn wants_link(&self) -> bool {
        self.link.is_none() && self.awaited.is_none()
    }

    /// Does all work that is possible now. Returns whether there may be more to do.
    pub(crate) fn pump(&mut self, now: Instant, in_process: &mut InProcess) -> bool {
        self.drain_watch(now);
        if self.wants_link() && now >= self.retry_at {
            self.connect(now, in_process);
        }
        self.producer.expire(now);
        let result = self.transfer(now, in_process);
        let failure = self.producer.take_failure();
        match (result, failure) {
            (Ok(busy), None) => busy,
            _ => {
                self.disconnected(now, in_process);
                true
            }
        }
    }

    /// Begins startup tracing: in the existing memory, or in memory of this process, which is
    /// offered to the service with the next connection.
    pub(crate) fn start_up(&mut self, request: StartupRequest, now: Instant, in_process: &mut InProcess) {
        if self.producer.endpoint.arbiter().is_none() && !self.refuses_memory {
            if self.link.is_some() {
                if self.ready {
                    self.producer.withdraw();
                    // If it fails, the connection ends all the same.
                    let _ = self.transfer(now, in_process);
                }
                self.hang_up(in_process);
                self.retry_at = now;
            }
            // Without memory nothing is recorded, which the answer to the request says.
            let _ = self.producer.endpoint.provide_memory();
        }
        self.producer.start_up(request);
    }

    fn connect(&mut self, now: Instant, in_process: &mut InProcess) {
        self.connected_at = now;
        self.has_failed = false;
        match &self.place {
            Place::Socket(socket) => {
                // Before the attempt, so that a service that starts meanwhile is noticed.
                if self.watch.is_none() {
                    self.watch = DirectoryWatch::of(&socket.address);
                }
                match SocketTransport::connect(socket, PRODUCER_PORT) {
                    Ok(link) => {
                        self.link = Some(AnyTransport::Socket(Box::new(link)));
                        self.watch = None;
                    }
                    Err(error) => {
                        let is_refused = crate::os::connect_error::producer_failed(&error);
                        self.retry_later(now);
                        if is_refused {
                            self.producer.refused();
                        }
                    }
                }
            }
            Place::Delivered(factory) => match SocketTransport::<Tag>::may_adopt() {
                Ok(()) => self.awaited = Some(factory.ask()),
                Err(_) => self.retry_later(now),
            },
            Place::Here(start) => {
                let service = in_process.get_or_insert_with(start);
                self.link = Some(AnyTransport::InProcess(InProcessTransport::connect(&mut **service, Port::Producer)));
                self.ready = true;
                self.producer.endpoint.serve_itself();
                self.producer.connected();
            }
        }
    }

    fn retry_later(&mut self, now: Instant) {
        self.has_failed = true;
        self.producer.not_connected();
        self.delay = if self.delay < RETRY_STEPS_UNTIL { self.delay + RETRY_STEP } else { RETRY_AT_LAST };
        self.retry_at = now + self.delay;
    }

    /// Handles a change in the directory of the socket, which may have appeared.
    fn drain_watch(&mut self, now: Instant) {
        let Some(watch) = &self.watch else { return };
        if watch.has_changed() && self.short <= MAX_HASTY_RENEWALS {
            self.retry_at = self.retry_at.min(now + RETRY_AFTER_CHANGE);
        }
    }

    /// Sends calls and handles replies.
    fn transfer(&mut self, now: Instant, in_process: &mut InProcess) -> Result<bool, TransportError> {
        let Self { producer, link, ready, .. } = self;
        let Some(link) = link else { return Ok(false) };
        match link {
            AnyTransport::Socket(link) => {
                let open = link.pump(|event| match event {
                    TransportEvent::Ready => {
                        *ready = true;
                        producer.connected();
                    }
                    TransportEvent::Reply(tag, reply) => producer.reply(tag, reply),
                })?;
                if !open {
                    return Err(TransportError::Disconnected);
                }
                if *ready {
                    producer.pump(link.is_congested(), now);
                    for call in producer.take_calls() {
                        if let Some(tag) = link.invoke(call)? {
                            producer.endpoint.rejected(tag);
                        }
                    }
                }
                link.flush()?;
                Ok(false)
            }
            AnyTransport::InProcess(link) => {
                let Some(service) = in_process.as_deref_mut() else { return Ok(false) };
                let mut busy = link.pump(service, |event| match event {
                    TransportEvent::Ready => {}
                    TransportEvent::Reply(tag, reply) => producer.reply(tag, reply),
                });
                producer.pump(false, now);
                let calls = producer.take_calls();
                busy |= link.send(service, calls, |tag| producer.endpoint.rejected(tag));
                Ok(busy)
            }
        }
    }

    /// Ends the connection for good, if there is one.
    pub(crate) fn shut_down(&mut self, in_process: &mut InProcess) {
        self.hang_up(in_process);
    }

    fn hang_up(&mut self, in_process: &mut InProcess) -> bool {
        if let (Some(AnyTransport::InProcess(link)), Some(service)) = (&mut self.link, in_process.as_mut()) {
            link.disconnect(&mut **service);
        }
        self.link = None;
        self.producer.disconnected();
        mem::replace(&mut self.ready, false)
    }

    fn disconnected(&mut self, now: Instant, in_process: &mut InProcess) {
        let stood = self.hang_up(in_process);
        self.has_failed = true;
        if mem::take(&mut self.producer.endpoint.memory_refused) {
            self.refuses_memory = true;
            self.retry_at = now;
            return;
        }
        self.watch = self.place.address().and_then(DirectoryWatch::of);
        if stood {
            self.delay = Duration::ZERO;
            let is_short = now < self.connected_at + SHORT;
            self.short = if is_short { self.short.saturating_add(1) } else { 0 };
            let wait = RENEWAL.saturating_mul(self.short.max(1)).min(RETRY_AT_LAST);
            self.retry_at = now.max(self.connected_at + wait);
        } else {
            self.retry_later(now);
        }
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
mod tests {
    use super::*;
    use crate::connection::transport::SocketPlace;

    fn link(place: Place) -> ReconnectingProducer {
        ReconnectingProducer::new(place, Identity::default(), Waker::new().unwrap())
    }

    /// Runs `act` without a service in this process.
    fn with(act: impl FnOnce(&mut InProcess)) {
        act(&mut None);
    }

    #[test]
    fn a_missing_service_is_tried_less_and_less_often() {
        let place = Place::Socket(SocketPlace::named("/nowhere/at/all".parse().unwrap()));
        let mut link = link(place);
        let mut now = Instant::now();
        let mut delays = Vec::new();
        for _ in 0..13 {
            with(|in_process| {
                link.pump(now, in_process);
            });
            delays.push((link.deadline().unwrap() - now).as_secs());
            now = link.deadline().unwrap();
        }
        assert_eq!(delays, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 30, 30, 30]);
    }

    #[test]
    fn triggers_delay_a_flush_only_while_the_connection_is_tried() {
        let place = Place::Socket(SocketPlace::named("/nowhere/at/all".parse().unwrap()));
        let mut link = link(place);
        let now = Instant::now();
        link.producer().activate_triggers(vec!["t".to_owned()], now + Duration::from_secs(60));
        let flush = |link: &mut ReconnectingProducer| {
            let (sender, receiver) = std::sync::mpsc::channel::<()>();
            link.flush(Box::new(move || sender.send(()).unwrap()), false);
            move || receiver.try_recv()
        };
        let ended = Err(std::sync::mpsc::TryRecvError::Disconnected);
        let early = flush(&mut link);
        assert_eq!(early(), Err(std::sync::mpsc::TryRecvError::Empty), "it may succeed");
        with(|in_process| _ = link.pump(now, in_process));
        assert_eq!(early(), ended, "it has failed");
        assert_eq!(flush(&mut link)(), ended, "the next attempt is later");
    }

    #[test]
    fn starts_of_sessions_do_not_wait_for_a_missing_service() {
        let place = Place::Socket(SocketPlace::named("/nowhere/at/all".parse().unwrap()));
        let mut link = link(place);
        let sync = |link: &mut ReconnectingProducer| {
            let (sender, receiver) = std::sync::mpsc::channel::<()>();
            link.sync_connecting(Box::new(move || drop(sender)));
            move || receiver.try_recv()
        };
        let ended = Err(std::sync::mpsc::TryRecvError::Disconnected);
        let early = sync(&mut link);
        assert_eq!(early(), Err(std::sync::mpsc::TryRecvError::Empty), "it may succeed");
        with(|in_process| _ = link.pump(Instant::now(), in_process));
        assert_eq!(early(), ended, "it has failed");
        assert_eq!(sync(&mut link)(), ended, "the next attempt is later");
    }

    #[test]
    fn lost_connections_are_always_renewed() {
        let place = Place::Socket(SocketPlace::named("/nowhere/at/all".parse().unwrap()));
        let mut link = link(place);
        let mut now = Instant::now();
        let mut lose = |link: &mut ReconnectingProducer, after: Duration| {
            let begin = now;
            (link.connected_at, link.ready) = (begin, true);
            now += after;
            with(|in_process| link.disconnected(now, in_process));
            let again = link.deadline().expect("it is tried again");
            assert!(again >= now);
            now = again;
            (again - begin).as_secs()
        };
        for lost in 1..=1_000 {
            assert_eq!(lose(&mut link, RENEWAL / 100), lost.min(30), "the {lost}th short one");
        }
        for _ in 0..1_000 {
            assert_eq!(lose(&mut link, SHORT), 10, "at once after one that has lasted");
        }
        assert_eq!(lose(&mut link, RENEWAL / 100), 1);
    }
}
