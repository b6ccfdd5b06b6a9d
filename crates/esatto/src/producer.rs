//! Producers of one's own: for programs that embed tracing in an event loop, a protocol or a transport that they have already.
//!
//! The rest of this crate has a thread that talks to services, calls data sources back and keeps a writer for each thread. Here are the
//! parts that it is made of:
//!
//! - [`Endpoint`]: a connection to a service as a producer, driven by the program. What the service wants comes as [`Event`]s.
//! - [`TraceWriter`]: writes the packets of one sequence into shared memory. Made by an endpoint, or by an [`shm::Arbiter`].
//! - [`shm`]: the memory and its arbiter, for programs that bring their own way to the service.
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
//! # A transport of one's own
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
use esatto_schema::{DataSourceDescriptor, producer_port};
use esatto_shm::Arbiter;

pub use crate::connection::producer::Event;
use crate::connection::producer::{Endpoint as Protocol, Identity, Tag};
use crate::connection::transport::{SocketPlace, SocketTransport, TransportEvent};
use crate::data_source::BufferExhausted;
use crate::error::Error;
use crate::os::{self, Waker};

/// Shared memory and arbiters, for programs that bring their own transport.
pub use esatto_shm as shm;
pub use esatto_shm::{Packet, TraceWriter};

/// A connection to a service as a producer.
///
/// It does nothing by itself: [`pump`](Self::pump), or [`wait`](Self::wait), sends and receives. Its methods queue what they have to tell the
/// service until then. Dropping it ends the connection; writers that are left over drop what is written.
pub struct Endpoint {
    link: SocketTransport<Tag>,
    protocol: Protocol,
    waker: Waker,
    /// Calls can be made.
    bound: bool,
    /// The service knows this producer.
    accepted: bool,
    /// Descriptors for the time when it does.
    held: Vec<Vec<u8>>,
    failed: bool,
}

/// Where to connect an [`Endpoint`], and with which wishes.
#[derive(Debug)]
#[must_use = "nothing is connected before `connect`"]
pub struct EndpointBuilder {
    identity: Identity,
    socket: Option<String>,
    offers_memory: bool,
}

impl EndpointBuilder {
    /// Uses another address than that of the system's service: a path, `@name` or `host:port`.
    pub fn socket(mut self, address: impl Into<String>) -> Self {
        self.socket = Some(address.into());
        self
    }

    /// Wishes for the shared memory buffer, in KiB; 0 leaves the choice to the service.
    pub fn shared_memory(mut self, size_kb: u32, page_size_kb: u32) -> Self {
        self.identity.shm_size_hint_bytes = size_kb.saturating_mul(1024);
        self.identity.page_size_hint_bytes = page_size_kb.saturating_mul(1024);
        self
    }

    /// As [`Builder::batch_commits`](crate::Builder::batch_commits).
    pub fn batch_commits(mut self, delay: Duration) -> Self {
        self.identity.batch_delay = delay;
        self
    }

    /// As [`Builder::direct_patching`](crate::Builder::direct_patching).
    pub fn direct_patching(mut self) -> Self {
        self.identity.direct_patching = true;
        self
    }

    /// Makes the shared memory here and offers it to the service, so that it can be written to before anybody answers:
    /// [`Endpoint::arbiter`] is there at once, and makes writers for reservations. A service that does not take it ends the connection.
    pub fn offer_memory(mut self) -> Self {
        self.offers_memory = true;
        self
    }

    /// Connects. Returns before the service has answered: [`Event::Connected`] tells that it has.
    ///
    /// # Errors
    ///
    /// If the address does not parse, nobody listens, or memory cannot be had.
    pub fn connect(self) -> Result<Endpoint, Error> {
        let socket = SocketPlace::of_producers(self.socket.as_deref())?;
        let link = SocketTransport::connect(&socket, producer_port::SERVICE);
        self.finish(link.map_err(|error| Error::disconnected(&error.to_string()))?)
    }

    /// Takes over a stream socket that is connected to a service.
    ///
    /// # Errors
    ///
    /// If it is something else, or memory cannot be had.
    pub fn over(self, socket: impl Into<OwnedFd>) -> Result<Endpoint, Error> {
        let link = SocketTransport::adopt(socket.into(), producer_port::SERVICE);
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
    /// Describes a connection. The name is that of the producer, as others see it.
    pub fn builder(name: impl Into<String>) -> EndpointBuilder {
        let identity = Identity { name: name.into(), ..Identity::default() };
        EndpointBuilder { identity, socket: None, offers_memory: false }
    }

    /// Sends and receives what can be at once, and returns what the service wants. To be called when the socket
    /// ([`AsFd`]) can be read, or written if [`wants_write`](Self::wants_write), when [`waker`](Self::waker) can be read, at [`deadline`](Self::deadline),
    /// and after methods of this endpoint were called.
    ///
    /// # Errors
    ///
    /// If the connection is over; what the service shares ends with it.
    pub fn pump(&mut self) -> Result<Vec<Event>, Error> {
        if self.failed {
            return Err(Error::disconnected("it has ended before"));
        }
        let result = self.transfer();
        if result.is_err() {
            self.failed = true;
            self.protocol.disconnected();
        }
        result
    }

    /// Waits until something happens, at most for `timeout`, and [pumps](Self::pump).
    ///
    /// # Errors
    ///
    /// As [`pump`](Self::pump).
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Vec<Event>, Error> {
        // What was asked for since the last time is sent first.
        let events = self.pump()?;
        if !events.is_empty() {
            return Ok(events);
        }
        let due = self.deadline().map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = [timeout, due].into_iter().flatten().min();
        os::wait(&self.waker, core::iter::once(self.link.interest()), timeout);
        self.pump()
    }

    /// Whether something waits to be written to the socket.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        self.link.interest().wants_write()
    }

    /// Becomes readable when writers, on whatever thread, have something to be sent.
    #[must_use]
    pub fn waker(&self) -> BorrowedFd<'_> {
        self.waker.fd()
    }

    /// When something has to be sent, with [batched commits](EndpointBuilder::batch_commits).
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.protocol.deadline()
    }

    /// Registers a data source, now or when the service has accepted this producer. Services want an `id`, not 0, to update it later.
    pub fn register(&mut self, descriptor: &DataSourceDescriptor) {
        let descriptor = descriptor.encode();
        if self.accepted {
            self.protocol.register(&descriptor);
        } else {
            self.held.push(descriptor);
        }
    }

    /// Renews the descriptor of a data source that was registered with the same name and id.
    pub fn update(&mut self, descriptor: &DataSourceDescriptor) {
        self.protocol.update(&descriptor.encode());
    }

    /// Takes back the registration of all data sources of this name.
    pub fn unregister(&mut self, name: &str) {
        self.protocol.unregister(name);
    }

    /// Makes a writer for a buffer: `target_buffer` of the config of an instance. A writer for buffer 0, or made before
    /// the service has shared memory, [drops everything](TraceWriter::is_null).
    ///
    /// Writers may be used on any thread, each by one at a time.
    #[must_use]
    pub fn create_writer(&self, target_buffer: u16, exhausted: BufferExhausted) -> TraceWriter {
        match self.protocol.arbiter() {
            Some(arbiter) => arbiter.create_writer(target_buffer, exhausted.policy()),
            None => TraceWriter::null(),
        }
    }

    /// What makes writers, once there is shared memory: for other threads, and for startup tracing.
    #[must_use]
    pub fn arbiter(&self) -> Option<&Arc<Arbiter>> {
        self.protocol.arbiter()
    }

    /// Tells that an instance records. Expected if its descriptor says `will_notify_on_start`.
    pub fn notify_started(&mut self, id: u64) {
        self.protocol.notify_started(id);
    }

    /// Tells that an instance has ended, behind everything that its writers have flushed. Expected if its descriptor says `will_notify_on_stop`.
    pub fn notify_stopped(&mut self, id: u64) {
        self.protocol.commit();
        self.protocol.notify_stopped(id);
    }

    /// Answers this flush request and all before it, behind everything that writers have flushed.
    pub fn acknowledge_flush(&mut self, request: u64) {
        self.protocol.acknowledge_flush(request);
    }

    /// Tells that something happened that sessions may wait for.
    pub fn activate_triggers(&mut self, names: &[&str]) {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        self.protocol.activate_triggers(&names);
    }

    /// Runs `done` when the service has handled everything that was asked for before. If the connection ends before, it is dropped.
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
            return Err(Error::disconnected("the service has ended it"));
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
