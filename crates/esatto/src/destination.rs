//! Destination of an instance's packets.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use esatto_schema::DataSourceConfigReader;
use esatto_shm::{Arbiter, ExhaustedPolicy, TraceWriter};

use crate::interceptor::Interception;
use crate::os::process_info::Pid;

/// Destination of an instance's packets.
#[derive(Debug)]
pub(crate) struct Destination {
    route: Mutex<Route>,
    pid: Pid,
}

#[derive(Debug)]
enum Route {
    /// A buffer of a service.
    Buffer { arbiter: Arc<Arbiter>, buffer: u16, policy: ExhaustedPolicy },
    /// Shared memory, until a session adopts the instance (`docs/spec/shared-memory.md` §14).
    Reservation { arbiter: Arc<Arbiter>, number: u16 },
    /// Only an interceptor in this process.
    Interceptor(Interception),
}

impl Destination {
    fn new(route: Route) -> Self {
        Self { route: Mutex::new(route), pid: Pid::default() }
    }

    /// Returns this destination, of a service that may know this process by another number.
    pub(crate) fn with_pid(self, pid: Pid) -> Self {
        Self { pid, ..self }
    }

    /// Returns the number of this process for the service.
    pub(crate) const fn pid(&self) -> &Pid {
        &self.pid
    }

    pub(crate) fn buffer(arbiter: Arc<Arbiter>, buffer: u16, policy: ExhaustedPolicy) -> Self {
        Self::new(Route::Buffer { arbiter, buffer, policy })
    }

    pub(crate) fn reservation(arbiter: Arc<Arbiter>, number: u16) -> Self {
        Self::new(Route::Reservation { arbiter, number })
    }

    /// Returns the interceptor that a config names; without one, `otherwise`.
    pub(crate) fn of_config(config: &[u8], otherwise: impl FnOnce() -> Self) -> Self {
        let reader = DataSourceConfigReader::new(config).interceptor_config();
        let name = reader.and_then(|reader| reader.name());
        match name.and_then(|name| Interception::new(name, config)) {
            Some(interception) => Self::new(Route::Interceptor(interception)),
            None => otherwise(),
        }
    }

    /// Makes a writer for the calling thread. Takes a lock and allocates.
    pub(crate) fn create_writer(&self) -> TraceWriter {
        match &*self.lock() {
            Route::Buffer { arbiter, buffer, policy } => arbiter.create_writer(*buffer, *policy),
            Route::Reservation { arbiter, number } => arbiter.create_startup_writer(*number),
            Route::Interceptor(interception) => interception.create_writer(),
        }
    }

    /// Prepares for the start of the instance.
    pub(crate) fn begin(&self) {
        if let Some(interception) = self.interception() {
            interception.start();
        }
    }

    /// Prepares for the stop of the instance.
    pub(crate) fn end(&self) {
        if let Some(interception) = self.interception() {
            interception.stop();
        }
    }

    fn interception(&self) -> Option<Interception> {
        match &*self.lock() {
            Route::Interceptor(interception) => Some(interception.clone()),
            _ => None,
        }
    }

    /// Returns whether packets have to be handed over at the end of each trace point.
    pub(crate) fn is_intercepted(&self) -> bool {
        matches!(&*self.lock(), Route::Interceptor(_))
    }

    /// Binds a reservation to the buffer of its session: writers that are made from now on are
    /// ordinary ones.
    pub(crate) fn adopt(&self, buffer: u16, policy: ExhaustedPolicy) {
        let mut route = self.lock();
        if let Route::Reservation { arbiter, .. } = &*route {
            let arbiter = Arc::clone(arbiter);
            *route = Route::Buffer { arbiter, buffer, policy };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Route> {
        self.route.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
