//! Interceptors: packets go to a function of this program instead of to the service.
//!
//! Use them to look at events while they happen (the crate `esatto-console` prints them), and in
//! tests. An interceptor is registered under a name. It gets the packets of those data sources
//! whose config names it (`DataSourceConfig.interceptor_config.name`). The session in the service
//! runs as usual and gets none of these packets.
//!
//! ```
//! use std::sync::Mutex;
//!
//! use esatto::{Backend, Interceptor, Session, Tracing};
//!
//! esatto::categories! { static APP = "app"; }
//!
//! static PACKETS: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
//!
//! struct Collector;
//!
//! impl Interceptor for Collector {
//!     type ThreadState = ();
//!
//!     fn setup(_config: &[u8]) -> Self {
//!         Self
//!     }
//!
//!     fn packet(&self, _: &mut (), packet: &[u8]) {
//!         PACKETS.lock().unwrap().push(packet.to_vec());
//!     }
//! }
//!
//! esatto::interceptor::register::<Collector>("test_interceptor")?;
//! let _tracing = Tracing::builder().in_process().start()?;
//! let mut config = esatto::track_events(64);
//! let source = config.data_sources[0].config.as_mut().expect("is there");
//! source.interceptor_config.get_or_insert_default().name = Some("test_interceptor".into());
//! let session = Session::start(Backend::InProcess, config)?;
//! esatto::instant!(APP, "hello");
//! assert!(PACKETS.lock().unwrap().iter().any(|packet| packet.windows(5).any(|bytes| bytes == b"hello")));
//! # session.stop()?;
//! # Ok::<(), esatto::Error>(())
//! ```
//!
//! The contract is `docs/spec/client-library.md` §15.

mod packet_assembly;

use core::any::Any;
use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use esatto_shm::TraceWriter;

use crate::callbacks::{caught, shielded};
use crate::error::Error;

/// The names that interceptors can have. The list is fixed because any user who may record sends
/// configs, which must not select any function of a program.
pub const NAMES: [&str; 3] = ["console", "test_interceptor", "etwexport"];

/// Receives the packets of a data source instance; the value is the state for one instance.
pub trait Interceptor: Send + Sync + Sized + 'static {
    /// State for each sequence of packets, that is, for each thread.
    type ThreadState: Default + Send + 'static;

    /// Makes an interceptor for an instance, before the data source is set up. `config` is the
    /// encoded `DataSourceConfig`.
    fn setup(config: &[u8]) -> Self;

    /// The instance is about to start.
    fn start(&self) {}

    /// The instance is about to stop.
    fn stop(&self) {}

    /// Handles a packet, as the service would have stored it: with `trusted_packet_sequence_id` in
    /// front, a number of this process for the sequence. Called at the end of the trace point, on
    /// its thread, where trace points do nothing. A panic is caught.
    fn packet(&self, state: &mut Self::ThreadState, packet: &[u8]);
}

/// Registers an interceptor. Does nothing if the name is already registered.
///
/// # Errors
///
/// If the name is not one of [`NAMES`].
pub fn register<I: Interceptor>(name: &str) -> Result<(), Error> {
    let Some(&name) = NAMES.iter().find(|&&known| known == name) else {
        return Err(Error::interceptor(name, &NAMES));
    };
    let mut registered = registered();
    if !registered.iter().any(|&(known, _)| known == name) {
        registered.push((name, |config| Arc::new(Held(I::setup(config)))));
    }
    Ok(())
}

type Make = fn(&[u8]) -> Arc<dyn Erased>;

fn registered() -> MutexGuard<'static, Vec<(&'static str, Make)>> {
    static REGISTERED: Mutex<Vec<(&str, Make)>> = Mutex::new(Vec::new());
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the list while the process forks.
pub(crate) fn hold_for_fork() -> impl Sized {
    registered()
}

/// An interceptor for one instance.
#[derive(Clone)]
pub(crate) struct Interception(Arc<dyn Erased>);

impl Interception {
    /// Makes the interceptor with this name for an instance with this config. `None` if there is
    /// none, or if it panics.
    pub(crate) fn new(name: &[u8], config: &[u8]) -> Option<Self> {
        let registered = registered();
        let make = registered.iter().find(|(known, _)| known.as_bytes() == name)?.1;
        drop(registered);
        caught(|| make(config)).map(Self)
    }

    pub(crate) fn start(&self) {
        shielded(|| self.0.start());
    }

    pub(crate) fn stop(&self) {
        shielded(|| self.0.stop());
    }

    /// Makes a writer whose packets go to the interceptor whenever it is flushed.
    pub(crate) fn create_writer(&self) -> TraceWriter {
        Arc::clone(&self.0).create_writer()
    }
}

/// An [`Interceptor`] of any type. All its code is reached through this trait, so that only
/// programs that register one contain it.
trait Erased: Send + Sync {
    fn start(&self);

    fn stop(&self);

    fn create_writer(self: Arc<Self>) -> TraceWriter;

    fn new_state(&self) -> Box<dyn Any + Send>;

    fn packet(&self, state: &mut (dyn Any + Send), packet: &[u8]);
}

struct Held<I>(I);

impl<I: Interceptor> Erased for Held<I> {
    fn start(&self) {
        self.0.start();
    }

    fn stop(&self) {
        self.0.stop();
    }

    fn create_writer(self: Arc<Self>) -> TraceWriter {
        packet_assembly::create_writer(self)
    }

    fn new_state(&self) -> Box<dyn Any + Send> {
        Box::new(I::ThreadState::default())
    }

    fn packet(&self, state: &mut (dyn Any + Send), packet: &[u8]) {
        if let Some(state) = state.downcast_mut() {
            self.0.packet(state, packet);
        }
    }
}

impl fmt::Debug for Interception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interception").finish_non_exhaustive()
    }
}
