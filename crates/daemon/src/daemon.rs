//! A daemon, from the creation of its sockets to its end.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use esatto_ipc::{Address, Family, Listener};
use esatto_service::Service;

use crate::buffer_memory_limit::max_buffer_bytes;
use crate::closers::Closers;
use crate::error::Error;
use crate::event_loop::{EventLoop, ListeningSocket};
use crate::metrics_file::MetricsFile;
use crate::options::Options;
use crate::shared_secret::SharedSecret;
use crate::socket_activation::Inherited;
use crate::socket_permissions::Access;
use crate::socket_role::{Ports, Role};
use crate::stats::{Counters, Stats};
use crate::system_facts;
use crate::user_shares::UserShares;
use crate::wakeup::Wakeup;
use esatto_daemon_program::ServiceManager;

/// The writers of a small ring are asked for their names at most once in this time.
const NAMES_INTERVAL_MS: u32 = 10;

/// A daemon whose sockets exist. Clients can connect already; the daemon serves them once it runs.
#[derive(Debug)]
pub struct Daemon {
    event_loop: EventLoop,
    wake: Arc<Wakeup>,
    counters: Arc<Counters>,
    producers: Vec<Address>,
    consumer: Address,
}

impl Daemon {
    /// Creates the sockets. Replaces files of sockets on which no process listens.
    ///
    /// # Errors
    ///
    /// One of the sockets cannot be created: then none is.
    pub fn bind(options: Options) -> Result<Self, Error> {
        Self::open(options, Inherited::default())
    }

    /// Like [`bind`](Self::bind), but with sockets that exist already. `options` names only the
    /// consumer socket of these.
    pub(crate) fn open(options: Options, inherited: Inherited) -> Result<Self, Error> {
        if options.producers.is_empty() && inherited.producers.is_empty() {
            return Err(Error::NoProducerAddress);
        }
        let known: Vec<&Address> =
            inherited.producers.iter().map(Listener::address).chain(&options.producers).collect();
        if let Some(stranger) = options.relay_endpoints.stranger_among(&known) {
            return Err(Error::NoSuchProducerAddress(stranger.clone()));
        }
        let wake = Arc::new(Wakeup::new().map_err(Error::system("create an eventfd"))?);
        let counters = Arc::<Counters>::default();
        let config = system_facts::service_config(&options.version)?;
        let buffer_bytes = max_buffer_bytes(&config.system);
        let mut service = Service::new(config);
        service.limit_buffers(buffer_bytes);
        service.keep_names(NAMES_INTERVAL_MS);
        let mut sockets = ListeningSockets { all: Vec::new(), secret: options.secret };
        service.remember_departed_producers(options.max_departed_bytes);
        service.share_by_default(options.shared_memory_bytes);
        service.reserve_data_sources(&options.own_data_sources, system_facts::pid());
        let access = options.permissions;
        let producer_ports = |address: &Address| Role::Producer.ports(options.relay_endpoints.contains(address));
        for listener in inherited.producers {
            let ports = producer_ports(listener.address());
            sockets.add(listener, Role::Producer, ports);
        }
        for address in &options.producers {
            sockets.open(address, Role::Producer, producer_ports(address), access.map(|all| all.producer))?;
        }
        let ports = Role::Consumer.ports(false);
        match inherited.consumer {
            Some(listener) => sockets.add(listener, Role::Consumer, ports),
            None => sockets.open(&options.consumer, Role::Consumer, ports, access.map(|all| all.consumer))?,
        }
        if sockets.secret.is_some() && sockets.all.iter().all(|socket| socket.secret.is_none()) {
            log::warn!("the shared secret has no effect: no socket is a TCP or vsock socket");
        }
        let sockets = core::mem::take(&mut sockets.all);
        let producers = sockets.iter().filter(|socket| socket.role == Role::Producer);
        let producers = producers.map(|socket| socket.listener.address().clone()).collect();
        let shares = UserShares::new(
            UserShares::max_connections(system_facts::max_descriptors()),
            system_facts::uid(),
            options.max_queued_bytes,
        );
        let closers = Closers::new(system_facts::uid());
        let event_loop = EventLoop::new(service, sockets, shares, closers, Arc::clone(&wake), Arc::clone(&counters))?;
        Ok(Self { event_loop, wake, counters, producers, consumer: options.consumer })
    }

    /// Returns the addresses of the sockets: those of producers first, that of consumers last.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.producers.iter().chain([&self.consumer])
    }

    /// Reports the state of the daemon to the service manager.
    pub(crate) fn report_to(&mut self, manager: ServiceManager) {
        self.event_loop.report_to(manager);
    }

    /// Writes counts into this file from now on, in the text format of Prometheus.
    pub(crate) fn write_metrics(&mut self, file: MetricsFile) {
        self.event_loop.write_metrics(file);
    }

    /// Stops all sessions when this descriptor is readable, and then ends the daemon.
    pub(crate) fn stop_when_readable(&mut self, fd: OwnedFd) -> Result<(), Error> {
        self.event_loop.stop_when_readable(fd)
    }

    /// Serves until `stopper` is used. Blocks.
    ///
    /// # Errors
    ///
    /// The operating system refuses to wait for events.
    pub fn run(self) -> Result<(), Error> {
        self.event_loop.run()
    }

    /// Returns a handle that ends the daemon from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper::new(&self.wake)
    }

    /// Serves on a new thread until the handle is stopped or dropped.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub fn spawn_thread(self) -> Result<DaemonHandle, Error> {
        let Self { event_loop, wake, counters, producers, consumer } = self;
        let body = move || {
            if let Err(e) = event_loop.run() {
                log::error!("the tracing service has failed: {e}");
            }
        };
        let thread = thread::Builder::new().name("traced".to_owned()).spawn(body);
        let thread = Some(thread.map_err(Error::system("start a thread"))?);
        Ok(DaemonHandle { thread, wake, counters, producers, consumer })
    }
}

/// Ends a running [`Daemon`].
#[derive(Clone, Debug)]
pub struct Stopper(Arc<Wakeup>);

impl Stopper {
    pub(crate) fn new(wake: &Arc<Wakeup>) -> Self {
        Self(Arc::clone(wake))
    }

    /// Requests the end without waiting for it.
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// A daemon that runs on a thread of this process. Dropping the handle stops it.
#[derive(Debug)]
pub struct DaemonHandle {
    thread: Option<JoinHandle<()>>,
    wake: Arc<Wakeup>,
    counters: Arc<Counters>,
    producers: Vec<Address>,
    consumer: Address,
}

impl DaemonHandle {
    /// Returns the addresses of the producer sockets.
    pub fn producers(&self) -> &[Address] {
        &self.producers
    }

    /// Returns the address of the consumer socket.
    pub fn consumer(&self) -> &Address {
        &self.consumer
    }

    /// Returns the counts so far.
    pub fn stats(&self) -> Stats {
        self.counters.snapshot()
    }

    /// Disconnects all clients, completes trace files, removes the socket files, and waits until
    /// the daemon has ended.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for DaemonHandle {
    fn drop(&mut self) {
        self.wake.stop();
        if let Some(thread) = self.thread.take() {
            if thread.join().is_err() {
                log::error!("the thread of the tracing service has panicked");
            }
        }
    }
}

/// Listening sockets. Their files are removed if one of the sockets cannot be created.
struct ListeningSockets {
    all: Vec<ListeningSocket>,
    /// Secret for clients of other machines.
    secret: Option<SharedSecret>,
}

impl ListeningSockets {
    fn open(&mut self, address: &Address, role: Role, ports: Ports, access: Option<Access>) -> Result<(), Error> {
        // Clients can connect only after the file has its group and mode.
        let prepare = |path: &Path| {
            let failed = |source| Error::Permissions { path: path.display().to_string(), source };
            access.map_or(Ok(()), |access| access.apply(path).map_err(failed))
        };
        self.add(Listener::bind_with(address, prepare)?, role, ports);
        Ok(())
    }

    fn add(&mut self, listener: Listener, role: Role, ports: Ports) {
        // The kernel names the users of unix sockets, and their files have a mode.
        let secret = self.secret.clone().filter(|_| listener.family() != Family::Unix);
        self.all.push(ListeningSocket { listener, role, ports, secret });
    }
}

impl Drop for ListeningSockets {
    fn drop(&mut self) {
        for socket in &self.all {
            socket.listener.unlink();
        }
    }
}
