//! Producers that the program drives itself: for programs that already have an event loop, a
//! protocol or a transport.
//!
//! The rest of this crate has a thread that talks to services, calls data sources back and keeps a
//! writer for each thread. This module offers its parts:
//!
//! - [`Endpoint`]: a connection to a service as a producer, driven by the program. [`Event`]s tell
//!   what the service wants.
//! - [`TraceWriter`]: writes the packets of one sequence into shared memory. An endpoint or an
//!   [`shm::Arbiter`] makes it.
//! - [`shm`]: the memory and its arbiter, for programs with their own way to the service.
//!
//! # An endpoint
//!
//! ```no_run
//! use esatto::BufferExhausted;
//! use esatto::producer::{Endpoint, Event};
//! use esatto::schema::{DataSourceDescriptor, DataSourceConfigReader, TracePacketWriter};
//!
//! let mut endpoint = Endpoint::builder("my program").connect()?;
//! let mut descriptor = DataSourceDescriptor::default();
//! descriptor.name = Some("com.example.mine".into());
//! descriptor.will_notify_on_start = Some(true);
//! descriptor.will_notify_on_stop = Some(true);
//! endpoint.register(&descriptor);
//!
//! let mut writer = None;
//! loop {
//!     for event in endpoint.wait(None)? {
//!         match event {
//!             Event::Start { id, config } => {
//!                 let buffer = DataSourceConfigReader::new(&config).target_buffer().unwrap_or(0);
//!                 let buffer = u16::try_from(buffer).unwrap_or(0);
//!                 let writer = writer.insert(endpoint.create_writer(buffer, BufferExhausted::Drop));
//!                 let mut packet = writer.new_packet();
//!                 packet.typed::<TracePacketWriter<'_>>().for_testing().str("hello");
//!                 endpoint.notify_started(id);
//!             }
//!             Event::Flush { request, .. } => {
//!                 writer.iter_mut().for_each(|writer| writer.flush());
//!                 endpoint.acknowledge_flush(request);
//!             }
//!             Event::Stop { id } => {
//!                 writer = None; // flushes
//!                 endpoint.notify_stopped(id);
//!             }
//!             _ => {}
//!         }
//!     }
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), esatto::Error>(())
//! ```
//!
//! # A custom transport
//!
//! The arbiter says which calls of the service to make. Where memory is not shared, commits carry
//! whole chunks:
//!
//! ```
//! use std::sync::Arc;
//!
//! use esatto::producer::shm::{Arbiter, ExhaustedPolicy, Options, Outgoing, PrivateRegion, abi::PageSize};
//!
//! let mut options = Options::default();
//! options.emulation = true; // the other side does not see this memory: chunks travel whole
//! let memory = Arc::new(PrivateRegion::new(64 * 1024));
//! // A program that does not poll after each write implements `Notify` in place of `()`.
//! let arbiter = Arbiter::with_options(memory, PageSize::DEFAULT, Arc::new(()), options)?;
//!
//! let mut writer = arbiter.create_writer(1, ExhaustedPolicy::Drop);
//! writer.new_packet().message().varint(8, 123); // TracePacket.timestamp
//! writer.flush();
//! let mut chunks = 0;
//! while let Some(outgoing) = arbiter.poll_outgoing() {
//!     if let Outgoing::Commit(request) = outgoing {
//!         chunks += request.moves.len();
//!     }
//! }
//! assert_eq!(chunks, 1);
//! # Ok::<(), esatto::producer::shm::Error>(())
//! ```

use core::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use esatto_protozero::Owned;
use esatto_schema::DataSourceDescriptor;
use esatto_shm::Arbiter;

pub use crate::connection::producer::Event;
use crate::connection::producer::{Endpoint as Protocol, Identity, Tag};
use crate::connection::transport::{PRODUCER_PORT, SocketPlace, SocketTransport, TransportEvent};
use crate::data_source::BufferExhausted;
use crate::error::Error;
use crate::os::{self, Waker};

/// Shared memory and arbiters, for programs that bring their own transport.
pub use esatto_shm as shm;
pub use esatto_shm::{Packet, TraceWriter};

/// A connection to a service as a producer.
///
/// It does nothing by itself: [`pump`](Self::pump) or [`wait`](Self::wait) sends and receives. All
/// other methods queue their messages to the service until then. Dropping it ends the connection.
/// Writers that outlive it drop their packets.
pub struct Endpoint {
    link: SocketTransport<Tag>,
    protocol: Protocol,
    waker: Waker,
    /// The service accepts calls.
    bound: bool,
    /// The service knows this producer.
    accepted: bool,
    /// Descriptors to send when the service has accepted this producer.
    held: Vec<Vec<u8>>,
    failed: bool,
}

/// The address and the options of an [`Endpoint`] to connect.
#[derive(Debug)]
#[must_use = "nothing is connected before `connect`"]
pub struct EndpointBuilder {
    identity: Identity,
    socket: Option<String>,
    offers_memory: bool,
}

impl EndpointBuilder {
    /// Uses another address than the system service's: a path, `@name` or `host:port`.
    pub fn socket(mut self, address: impl Into<String>) -> Self {
        self.socket = Some(address.into());
        self
    }

    /// Requests a size for the shared memory buffer, in KiB. 0 leaves the choice to the service.
    pub fn shared_memory(mut self, size_kb: u32, page_size_kb: u32) -> Self {
        self.identity.shm_size_hint_bytes = size_kb.saturating_mul(1024);
        self.identity.page_size_hint_bytes = page_size_kb.saturating_mul(1024);
        self
    }

    /// See [`Builder::batch_commits`](crate::Builder::batch_commits).
    pub fn batch_commits(mut self, delay: Duration) -> Self {
        self.identity.batch_delay = delay;
        self
    }

    /// See [`Builder::direct_patching`](crate::Builder::direct_patching).
    pub fn direct_patching(mut self) -> Self {
        self.identity.direct_patching = true;
        self
    }

    /// Makes the shared memory here and offers it to the service, so that the program can write
    /// before the service answers. [`Endpoint::arbiter`] returns the arbiter at once, which makes
    /// writers for reservations. A service that refuses the memory ends the connection.
    pub fn offer_memory(mut self) -> Self {
        self.offers_memory = true;
        self
    }

    /// Connects. Returns before the service has answered; [`Event::Connected`] reports its answer.
    ///
    /// # Errors
    ///
    /// If the address does not parse, no service listens, or memory cannot be allocated.
    pub fn connect(self) -> Result<Endpoint, Error> {
        let socket = SocketPlace::of_producers(self.socket.as_deref())?;
        let link = SocketTransport::connect(&socket, PRODUCER_PORT);
        self.finish(link.map_err(|error| Error::disconnected(&error.to_string()))?)
    }

    /// Uses a stream socket that is already connected to a service.
    ///
    /// # Errors
    ///
    /// If it is not such a socket, or memory cannot be allocated.
    pub fn over(self, socket: impl Into<OwnedFd>) -> Result<Endpoint, Error> {
        let link = SocketTransport::adopt(socket.into(), PRODUCER_PORT);
        self.finish(link.map_err(|error| Error::disconnected(&error.to_string()))?)
    }

    fn finish(self, link: SocketTransport<Tag>) -> Result<Endpoint, Error> {
        let waker = Waker::new().map_err(Error::thread)?;
        let mut protocol = Protocol::new(self.identity, waker.clone());
        if self.offers_memory {
            protocol.provide_memory().map_err(|why| Error::disconnected(&why))?;
        }
        Ok(Endpoint { link, protocol, waker, bound: false, accepted: false, held: Vec::new(), failed: false })
    }
}

impl Endpoint {
    /// Describes a connection. Others see the producer under this name.
    pub fn builder(name: impl Into<String>) -> EndpointBuilder {
        let identity = Identity { name: name.into(), ..Identity::default() };
        EndpointBuilder { identity, socket: None, offers_memory: false }
    }

    /// Sends and receives as much as possible without waiting, and returns the commands of the
    /// service. Call it
    ///
    /// - when the socket ([`AsFd`]) can be read, or written if [`wants_write`](Self::wants_write);
    /// - when [`waker`](Self::waker) can be read;
    /// - at [`deadline`](Self::deadline);
    /// - after calls of this endpoint's methods.
    ///
    /// # Errors
    ///
    /// If the connection is over. The shared memory ends with it.
    pub fn pump(&mut self) -> Result<Vec<Event>, Error> {
        if self.failed {
            return Err(Error::disconnected("the connection has ended"));
        }
        let result = self.transfer();
        if result.is_err() {
            self.failed = true;
            self.protocol.disconnected();
        }
        result
    }

    /// Waits at most `timeout` until something happens, and [pumps](Self::pump).
    ///
    /// # Errors
    ///
    /// As for [`pump`](Self::pump).
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Vec<Event>, Error> {
        // Requests since the last call are sent first.
        let events = self.pump()?;
        if !events.is_empty() {
            return Ok(events);
        }
        let due = self.deadline().map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = [timeout, due].into_iter().flatten().min();
        os::wait(&self.waker, core::iter::once(self.link.interest()), timeout);
        self.pump()
    }

    /// Returns whether the socket has to become writable before everything is sent.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        self.link.interest().wants_write()
    }

    /// Returns a descriptor that becomes readable when a writer on any thread has something to
    /// send.
    #[must_use]
    pub fn waker(&self) -> BorrowedFd<'_> {
        self.waker.fd()
    }

    /// Returns when the next [batched commits](EndpointBuilder::batch_commits) have to be sent.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.protocol.deadline()
    }

    /// Registers a data source, at once or when the service has accepted this producer. To update
    /// it later, services need an `id` other than 0.
    pub fn register(&mut self, descriptor: &DataSourceDescriptor) {
        let descriptor = descriptor.encode();
        if self.accepted {
            self.protocol.register(&descriptor);
        } else {
            self.held.push(descriptor);
        }
    }

    /// Updates the descriptor of a data source that was registered with the same name and id.
    pub fn update(&mut self, descriptor: &DataSourceDescriptor) {
        self.protocol.update(&descriptor.encode());
    }

    /// Unregisters all data sources of this name.
    pub fn unregister(&mut self, name: &str) {
        self.protocol.unregister(name);
    }

    /// Makes a writer for a buffer: the `target_buffer` of an instance's config. A writer for
    /// buffer 0, or one made before the service has shared memory, [drops
    /// everything](TraceWriter::is_null).
    ///
    /// Writers may be used on any thread, each by one thread at a time.
    #[must_use]
    pub fn create_writer(&self, target_buffer: u16, exhausted: BufferExhausted) -> TraceWriter {
        match self.protocol.arbiter() {
            Some(arbiter) => arbiter.create_writer(target_buffer, exhausted.policy()),
            None => TraceWriter::null(),
        }
    }

    /// Returns the arbiter, once there is shared memory. It makes writers for other threads and for
    /// startup tracing.
    #[must_use]
    pub fn arbiter(&self) -> Option<&Arc<Arbiter>> {
        self.protocol.arbiter()
    }

    /// Tells the service that an instance records. The service expects it if the descriptor says
    /// `will_notify_on_start`.
    pub fn notify_started(&mut self, id: u64) {
        self.protocol.notify_started(id);
    }

    /// Tells the service that an instance has ended, after everything that its writers have
    /// flushed. The service expects it if the descriptor says `will_notify_on_stop`.
    pub fn notify_stopped(&mut self, id: u64) {
        self.protocol.commit();
        self.protocol.notify_stopped(id);
    }

    /// Answers this flush request and all earlier ones, after everything that writers have flushed.
    pub fn acknowledge_flush(&mut self, request: u64) {
        self.protocol.acknowledge_flush(request);
    }

    /// Activates triggers: names of happenings that sessions may wait for.
    pub fn activate_triggers(&mut self, names: &[&str]) {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        self.protocol.activate_triggers(&names);
    }

    /// Runs `done` when the service has handled everything that was requested before. If the
    /// connection ends first, `done` is dropped.
    pub fn sync(&mut self, done: impl FnOnce() + Send + 'static) {
        self.protocol.sync(Box::new(done));
    }

    fn transfer(&mut self) -> Result<Vec<Event>, Error> {
        let Self { link, protocol, bound, .. } = self;
        self.waker.clear();
        let broken = |error: esatto_ipc::Error| Error::disconnected(&error.to_string());
        let open = link.pump(|event| match event {
            TransportEvent::Ready => {
                *bound = true;
                protocol.connected();
            }
            TransportEvent::Reply(tag, reply) => protocol.reply(tag, reply),
        });
        if !open.map_err(broken)? {
            return Err(Error::disconnected("the service has closed the connection"));
        }
        let events = protocol.take_events();
        if events.iter().any(|event| matches!(event, Event::Connected)) {
            self.accepted = true;
            for descriptor in core::mem::take(&mut self.held) {
                protocol.register(&descriptor);
            }
        }
        if let Some(failure) = protocol.take_failure() {
            return Err(Error::disconnected(&failure));
        }
        if *bound {
            protocol.pump(link.is_congested(), Instant::now());
            for call in protocol.take_calls() {
                if let Some(tag) = link.invoke(call).map_err(broken)? {
                    protocol.rejected(tag);
                }
            }
        }
        link.flush().map_err(broken)?;
        Ok(events)
    }
}

impl AsFd for Endpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.interest().fd
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.protocol.disconnected();
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("accepted", &self.accepted)
            .field("shares_memory", &self.protocol.arbiter().is_some())
            .finish_non_exhaustive()
    }
}
