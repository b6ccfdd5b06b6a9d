//! The declaration of a data source.

use core::fmt;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use esatto_instances::{HeldSlots, MAX_INSTANCES, Recording, ThreadGate as _, ThreadTable as _, Ticket};
use esatto_protozero::Owned;
use esatto_schema::{DataSourceConfigReader, DataSourceDescriptor};
use esatto_shm::ExhaustedPolicy;

use super::source_instances::{Instance, Instances};
use super::{
    AnySource, Assignment, BufferExhausted, Context, Done, Flush, HeldInstances, SourceConfig, Stop, canonical,
    registry, waits,
};
use crate::backend::Backend;
use crate::callbacks::{caught, shielded};
use crate::category::registry as category_registry;
use crate::error::Error;
use crate::hash::fnv;
use crate::os::fork::StaticMutex;
use crate::record::Threads;
use crate::trace_point_gate::Gate;
use crate::{control_thread, start_times, track_uuid};

/// Callbacks of a data source for the life of an instance; the value is the state of one instance.
///
/// See the [module](crate::data_source) for the order of the calls, and [`Source`] for the rest.
pub trait DataSource: Send + Sync + Sized + 'static {
    /// The part of the session's config that [`setup`](Self::setup) receives. `()` if it does not
    /// need any.
    type Config: SourceConfig;

    /// State of each writer, that is, of each thread and instance. It is made with the writer and
    /// dropped with it: by the thread, or, while the thread is not in a trace point, by the control
    /// thread. Its destructor must therefore not wait for another thread.
    type ThreadState: Default + Send + 'static;

    /// State of each writer on which later packets build, such as announced names. It is made again
    /// when readers of the trace may have lost earlier packets.
    type IncrementalState: Default + Send + 'static;

    /// Only the thread that made a [`ThreadState`](Self::ThreadState) or
    /// [`IncrementalState`](Self::IncrementalState) drops it: at a later trace point, or when it
    /// ends.
    #[doc(hidden)]
    const STATE_IS_BOUND: bool = false;

    /// Makes an instance. It records nothing yet.
    fn setup(setup: &Setup<'_, Self::Config>) -> Self;

    /// Starts the instance. Trace points record from now on, including those in this call.
    fn start(&self) {}

    /// Stops the instance. Trace points record until `stop` is dropped, by default at once.
    fn stop(&self, stop: Stop) {
        stop.complete();
    }

    /// Announces that every thread will restart its incremental state, each at its next trace
    /// point.
    fn will_clear_incremental_state(&self) {}

    /// Reports that the instance has ended: nothing is recorded into it any more. It is dropped
    /// with its last reference.
    #[doc(hidden)]
    fn ended(&self) {}

    /// Resets the incremental state of one writer. The default replaces it. Override it to empty a
    /// state that is expensive to make.
    fn clear_incremental_state(state: &mut Self::IncrementalState) {
        *state = Self::IncrementalState::default();
    }

    /// Returns whether an instance of startup tracing that was set up for one encoded
    /// `DataSourceConfig` may serve a session with the other one. The default requires that both
    /// want the same (`docs/spec/client-library.md` §12).
    fn can_adopt(startup: &[u8], session: &[u8]) -> bool {
        canonical(startup) == canonical(session)
    }
}

/// The order for a new instance.
#[derive(Debug)]
pub struct Setup<'a, C> {
    config: &'a C,
    bytes: &'a [u8],
    instance: usize,
    backend: Backend,
    startup: bool,
    tag: usize,
}

impl<C> Setup<'_, C> {
    /// Returns the config.
    #[must_use]
    pub const fn config(&self) -> &C {
        self.config
    }

    /// Returns the whole config, encoded.
    #[must_use]
    pub const fn config_bytes(&self) -> &[u8] {
        self.bytes
    }

    /// Returns a reader for the fields of the whole config.
    #[must_use]
    pub fn common(&self) -> DataSourceConfigReader<'_> {
        DataSourceConfigReader::new(self.bytes)
    }

    /// Returns the number of the instance, 0 to 7, until it ends.
    #[must_use]
    pub const fn instance(&self) -> usize {
        self.instance
    }

    /// Returns the service whose session wants the instance.
    #[must_use]
    pub const fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Returns the number with which the source was [tagged](Source::tagged).
    #[doc(hidden)]
    #[must_use]
    pub const fn tag(&self) -> usize {
        self.tag
    }

    /// Returns true if no session exists yet: [startup tracing](crate::Startup).
    #[must_use]
    pub const fn is_startup(&self) -> bool {
        self.startup
    }
}

/// A data source of this program: a static that trace points name.
///
/// ```
/// # struct Sampler;
/// # impl esatto::DataSource for Sampler {
/// #     type Config = ();
/// #     type ThreadState = ();
/// #     type IncrementalState = ();
/// #     fn setup(_: &esatto::Setup<'_, ()>) -> Self { Self }
/// # }
/// # impl Sampler { fn write_all(&self) {} }
/// use esatto::{BufferExhausted, Source};
///
/// static SAMPLES: Source<Sampler> = Source::new("com.example.samples")
///     .buffer_exhausted(BufferExhausted::Stall)
///     .on_flush(|sampler, _flush| sampler.write_all());
///
/// SAMPLES.register()?;
/// assert!(!SAMPLES.is_enabled());
/// # Ok::<(), esatto::Error>(())
/// ```
pub struct Source<T: DataSource> {
    instances: Instances<T>,
    /// The index of the threads' writers; `UNREGISTERED` before registration.
    index: AtomicU32,
    name: &'static str,
    exhausted: BufferExhausted,
    exhausted_from_config: bool,
    single: bool,
    tag: usize,
    on_flush: Option<fn(&T, Flush)>,
    refused: AtomicU64,
    registration: StaticMutex<Registration>,
}

const UNREGISTERED: u32 = u32::MAX;

struct Registration {
    /// Encoded; `None` until it is registered.
    descriptor: Option<Vec<u8>>,
    version: u64,
}

impl<T: DataSource> Source<T> {
    /// Declares a data source with the name that configs use, such as `com.example.samples`.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            instances: Instances::new(),
            index: AtomicU32::new(UNREGISTERED),
            name,
            exhausted: BufferExhausted::Drop,
            exhausted_from_config: false,
            single: false,
            tag: 0,
            on_flush: None,
            refused: AtomicU64::new(0),
            registration: StaticMutex::new(Registration { descriptor: None, version: 0 }),
        }
    }

    /// Sets what trace points do when shared memory is full. The default is
    /// [`BufferExhausted::Drop`].
    #[must_use]
    pub const fn buffer_exhausted(mut self, exhausted: BufferExhausted) -> Self {
        self.exhausted = exhausted;
        self
    }

    /// Lets sessions choose that (`DataSourceConfig.buffer_exhausted_policy`). By default they
    /// cannot, because waiting changes the behaviour of a program.
    #[must_use]
    pub const fn buffer_exhausted_by_config(mut self) -> Self {
        self.exhausted_from_config = true;
        self
    }

    /// Allows one instance at a time. Further ones are refused.
    #[must_use]
    pub const fn single_instance(mut self) -> Self {
        self.single = true;
        self
    }

    /// Sets a number that [`Setup::tag`] returns, for types that several sources share.
    #[doc(hidden)]
    #[must_use]
    pub const fn tagged(mut self, tag: usize) -> Self {
        self.tag = tag;
        self
    }

    /// Sets the function that writes the data kept back so far, when a session is flushed. The
    /// control thread calls it, as it calls the methods of [`DataSource`].
    ///
    /// A data source without it is registered as one that services need not ask (`no_flush`).
    #[must_use]
    pub const fn on_flush(mut self, flush: fn(&T, Flush)) -> Self {
        self.on_flush = Some(flush);
        self
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Makes the data source known to the services of current and later connections.
    ///
    /// Does nothing if it is already registered. A data source that is not registered never
    /// records.
    ///
    /// A session that runs already records it some milliseconds later. Packets before that are not
    /// in the trace. A program that must not miss them registers its data sources, starts
    /// [`Tracing`](crate::Tracing), and calls [`wait_until_enabled`](Self::wait_until_enabled). If
    /// `ESATTO_WAIT_MS` is [set](crate::Builder::system), as `esatto record -- COMMAND` does,
    /// `start` waits for the data sources that are registered before it. For those that are
    /// registered after it, this call waits.
    ///
    /// # Errors
    ///
    /// If the process already has 32 data sources.
    pub fn register(&'static self) -> Result<(), Error> {
        self.register_with(&DataSourceDescriptor::default())
    }

    /// Registers with a full descriptor instead of only a name. The library fills in the name, the
    /// id, `will_notify_on_start` and `handles_incremental_state_clear`. It also fills in
    /// `will_notify_on_stop` and `no_flush`, unless they are set.
    ///
    /// # Errors
    ///
    /// As for [`register`](Self::register), and if the descriptor has another name.
    pub fn register_with(&'static self, descriptor: &DataSourceDescriptor) -> Result<(), Error> {
        self.check_name(descriptor)?;
        {
            let mut registration = self.registration.lock();
            if registration.descriptor.is_some() {
                return Ok(());
            }
            let index = registry::add(self)?;
            registration.descriptor = Some(self.complete(descriptor));
            registration.version += 1;
            self.index.store(index as u32, Ordering::Release);
        }
        control_thread::wake();
        waits::registered();
        Ok(())
    }

    /// Waits until a session records this data source, for programs that must not miss the
    /// beginning. Returns false if the time is over first. [Register](Self::register) it before.
    ///
    /// Must not be called in a callback of a data source, nor inside a trace point.
    pub fn wait_until_enabled(&self, timeout: Duration) -> bool {
        let is_enabled = category_registry::wait_for_source(timeout, || self.is_enabled());
        start_times::waited();
        is_enabled
    }

    /// Replaces the descriptor, for values that change at run time. Services before v22 ignore it.
    ///
    /// # Errors
    ///
    /// If the data source is not registered, or the descriptor has another name.
    pub fn update_descriptor(&'static self, descriptor: &DataSourceDescriptor) -> Result<(), Error> {
        self.check_name(descriptor)?;
        {
            let mut registration = self.registration.lock();
            if registration.descriptor.is_none() {
                return Err(Error::data_source(self.name, "is not registered"));
            }
            registration.descriptor = Some(self.complete(descriptor));
            registration.version += 1;
        }
        control_thread::wake();
        Ok(())
    }

    /// Returns true while a session records. Costs one relaxed load.
    #[inline(always)]
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.instances.recording.peek() != 0
    }

    /// Calls `body` once for each instance that records. Each call writes into its own sequence of
    /// packets.
    ///
    /// While no session records, this costs one relaxed load and a branch. A trace point inside any
    /// other trace point does nothing.
    #[inline(always)]
    pub fn trace(&'static self, mut body: impl FnMut(&mut Context<'_, T>)) {
        if self.is_enabled() {
            self.trace_enabled(&mut body);
        }
    }

    #[inline(never)]
    fn trace_enabled(&'static self, body: &mut dyn FnMut(&mut Context<'_, T>)) {
        let Some(mut thread) = Threads::enter() else { return };
        let writers = thread.sources();
        let mut instances = self.instances.recording.load();
        let index = self.index.load(Ordering::Acquire) as usize;
        while instances != 0 {
            let slot = instances.trailing_zeros() as usize;
            instances &= instances - 1;
            if let Some(writer) = writers.writer(&self.instances, index, slot) {
                writer.trace(body);
            }
        }
    }

    /// Returns the current instances with their numbers, for threads that do not trace. An instance
    /// that ends meanwhile lives until the result is dropped. Takes locks.
    pub fn instances(&self) -> impl Iterator<Item = (usize, Arc<T>)> + '_ {
        (0..MAX_INSTANCES).filter_map(|slot| Some((slot, self.instances.slots.get(slot).1?.object()?)))
    }

    /// Returns the instance with a number, if there is one. Takes locks.
    #[doc(hidden)]
    pub fn instance(&self, slot: usize) -> Option<Arc<T>> {
        if slot >= MAX_INSTANCES {
            return None;
        }
        self.instances.slots.get(slot).1?.object()
    }

    /// Returns the instances that record, as a bit mask.
    #[doc(hidden)]
    pub fn recording(&self) -> u32 {
        self.instances.recording.load()
    }

    /// Returns the index of the threads' writers, for a source that is registered.
    pub(super) fn index(&self) -> usize {
        self.index.load(Ordering::Acquire) as usize
    }

    /// Returns how many instances were refused so far: the ninth at a time, those whose config
    /// cannot be used, those whose set-up panicked.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(super) const fn table(&self) -> &Instances<T> {
        &self.instances
    }

    fn check_name(&self, descriptor: &DataSourceDescriptor) -> Result<(), Error> {
        match &descriptor.name {
            Some(name) if name.as_bytes() != self.name.as_bytes() => {
                Err(Error::data_source(self.name, "has a descriptor with another name"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the descriptor with the fields that the library fills in.
    fn complete(&'static self, descriptor: &DataSourceDescriptor) -> Vec<u8> {
        let mut descriptor = descriptor.clone();
        descriptor.name = Some(self.name.into());
        descriptor.id = Some(self.id());
        descriptor.will_notify_on_start = Some(true);
        descriptor.will_notify_on_stop.get_or_insert(true);
        descriptor.handles_incremental_state_clear = Some(true);
        descriptor.no_flush = Some(descriptor.no_flush.unwrap_or(false) || self.on_flush.is_none());
        descriptor.encode()
    }

    /// Returns an id that is equal for all registrations of this process, and differs from those of
    /// other data sources and processes.
    fn id(&'static self) -> u64 {
        let address = core::ptr::from_ref(self).addr() as u64;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&address.to_le_bytes());
        bytes[8..].copy_from_slice(&track_uuid::process_uuid().to_le_bytes());
        fnv(&bytes).max(1)
    }

    fn make(&self, slot: usize, assignment: &Assignment) -> Option<T> {
        let config = T::Config::read(&assignment.config)?;
        let setup = Setup {
            config: &config,
            bytes: &assignment.config,
            instance: slot,
            backend: assignment.backend.clone(),
            startup: assignment.startup,
            tag: self.tag,
        };
        caught(|| T::setup(&setup))
    }

    /// Calls the instance, if it still exists. A panic must not end the control thread.
    fn with(&self, ticket: Ticket, call: impl FnOnce(&T)) {
        if let Some(object) = self.instances.slots.redeem(ticket).and_then(|instance| instance.object()) {
            shielded(|| call(&object));
        }
    }
}

impl<T: DataSource> AnySource for Source<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&'static self) -> u64 {
        self.registration.lock().version
    }

    fn descriptor(&'static self) -> Vec<u8> {
        self.registration.lock().descriptor.clone().unwrap_or_default()
    }

    fn policy(&self, config: &[u8]) -> ExhaustedPolicy {
        let wanted = BufferExhausted::of_config(config).filter(|_| self.exhausted_from_config);
        wanted.unwrap_or(self.exhausted).policy()
    }

    fn setup(&'static self, assignment: Assignment) -> Option<Ticket> {
        let free =
            if self.single && !self.instances.slots.is_empty() { None } else { self.instances.slots.free_slot() };
        let made = free.and_then(|slot| Some((slot, self.make(slot, &assignment)?)));
        let Some((slot, object)) = made else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let instance = Instance::new(assignment.destination, Arc::new(object));
        Some(self.instances.slots.occupy(slot, Arc::new(instance)))
    }

    fn start(&self, ticket: Ticket) {
        if let Some(instance) = self.instances.slots.redeem(ticket) {
            instance.destination.begin();
        }
        self.instances.recording.start(ticket.slot);
        self.with(ticket, T::start);
        category_registry::source_started();
    }

    fn is_recording(&self) -> bool {
        self.is_enabled()
    }

    fn stop(&self, ticket: Ticket, done: Done) {
        if let Some(instance) = self.instances.slots.redeem(ticket) {
            instance.destination.end();
        }
        self.with(ticket, |object| object.stop(Stop::new(ticket.slot, done)));
    }

    fn close(&self, ticket: Ticket) {
        // A handler's trace point would wait for the slot.
        let _closed = Gate::close();
        self.instances.slots.close(ticket, || self.instances.recording.stop(ticket.slot));
    }

    fn end(&self, ticket: Ticket) {
        if let Some(instance) = self.instances.slots.vacate(ticket, || self.instances.recording.stop(ticket.slot)) {
            let object = instance.take_object();
            shielded(|| object.iter().for_each(|object| object.ended()));
            shielded(|| drop(object));
        }
    }

    fn tickets(&self) -> Vec<Ticket> {
        self.instances.slots.tickets()
    }

    fn hold(&'static self) -> Box<dyn HeldInstances> {
        Box::new(HeldSource { recording: &self.instances.recording, slots: self.instances.slots.hold() })
    }

    fn flush(&self, ticket: Ticket, flush: Flush) {
        if let Some(on_flush) = self.on_flush {
            self.with(ticket, |object| on_flush(object, flush));
        }
    }

    fn clear_incremental_state(&self, ticket: Ticket) {
        self.with(ticket, T::will_clear_incremental_state);
        self.instances.slots.clear_incremental_state(ticket);
    }

    fn can_adopt(&self, startup: &[u8], session: &[u8]) -> bool {
        caught(|| T::can_adopt(startup, session)).unwrap_or(false)
    }

    fn adopt(&self, ticket: Ticket, buffer: u16, policy: ExhaustedPolicy) {
        if let Some(instance) = self.instances.slots.redeem(ticket) {
            instance.destination.adopt(buffer, policy);
        }
    }
}

struct HeldSource<T: DataSource> {
    recording: &'static Recording,
    slots: HeldSlots<'static, Instance<T>>,
}

impl<T: DataSource> HeldInstances for HeldSource<T> {
    fn forget(&mut self) {
        self.recording.set(0);
        self.slots.forget();
    }
}

impl<T: DataSource> fmt::Debug for Source<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("name", &self.name)
            .field("recording", &self.instances.recording)
            .finish_non_exhaustive()
    }
}
