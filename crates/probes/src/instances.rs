//! [`Instances`]: a data source whose instances do not know of each other.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

use esatto::producer::TraceWriter;
use esatto_schema::DataSourceDescriptor;

use crate::data_source::{
    DataSource, Instance, InstanceId, Monotonic, Observations, Observed, SetupError, TracingSession,
};

/// An instance that works by itself. [`Instances`] makes a [`DataSource`] of all of them.
pub(crate) trait Source: Sized {
    /// Describes the data source to the service.
    fn descriptor() -> DataSourceDescriptor;

    /// See [`DataSource::set_up`].
    fn set_up(instance: &Instance) -> Result<Self, SetupError>;

    /// Writes what belongs at the beginning.
    fn start(&mut self, now: Monotonic, writer: &mut TraceWriter);

    /// Writes all that happened until now. The caller then flushes the writer.
    fn flush(&mut self, _writer: &mut TraceWriter) {}

    /// Writes what belongs at the end. The caller then flushes the writer.
    fn stop(&mut self, _writer: &mut TraceWriter) {}

    /// See [`DataSource::clear_incremental_state`].
    fn clear_incremental_state(&mut self) {}

    /// See [`DataSource::deadline`]; not asked before the start.
    fn deadline(&self) -> Option<Monotonic> {
        None
    }

    /// See [`DataSource::tick`]; not called before the start.
    fn tick(&mut self, _now: Monotonic, _writer: &mut TraceWriter) {}

    /// See [`DataSource::observe`]; not called before the start.
    fn observe(&mut self, _observed: &Observed, _writer: &mut TraceWriter) {}

    /// See [`DataSource::descriptors`].
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

/// All instances of one data source.
pub(crate) struct Instances<S> {
    all: BTreeMap<InstanceId, Entry<S>>,
    clock: fn() -> Monotonic,
}

struct Entry<S> {
    session: TracingSession,
    source: S,
    /// Set by the start.
    writer: Option<TraceWriter>,
}

impl<S> Instances<S> {
    /// `clock` reads CLOCK_MONOTONIC.
    pub(crate) const fn new(clock: fn() -> Monotonic) -> Self {
        Self { all: BTreeMap::new(), clock }
    }

    fn started(&mut self, id: InstanceId) -> Option<(&mut S, &mut TraceWriter)> {
        let entry = self.all.get_mut(&id)?;
        Some((&mut entry.source, entry.writer.as_mut()?))
    }
}

impl<S: Source> DataSource for Instances<S> {
    fn descriptor(&self) -> DataSourceDescriptor {
        S::descriptor()
    }

    fn set_up(&mut self, instance: Instance) -> Result<(), SetupError> {
        let source = S::set_up(&instance)?;
        self.all.insert(instance.id, Entry { session: instance.session, source, writer: None });
        Ok(())
    }

    fn start(&mut self, id: InstanceId, writer: TraceWriter) {
        if let Some(entry) = self.all.get_mut(&id) {
            entry.source.start((self.clock)(), entry.writer.insert(writer));
        }
    }

    fn flush(&mut self, id: InstanceId, _: &mut Observations) {
        if let Some((source, writer)) = self.started(id) {
            source.flush(writer);
            writer.flush();
        }
    }

    fn stop(&mut self, id: InstanceId) {
        if let Some(Entry { mut source, writer: Some(mut writer), .. }) = self.all.remove(&id) {
            source.stop(&mut writer);
            writer.flush();
        }
    }

    fn clear_incremental_state(&mut self, id: InstanceId) {
        if let Some((source, _)) = self.started(id) {
            source.clear_incremental_state();
        }
    }

    fn deadline(&self) -> Option<Monotonic> {
        let started = self.all.values().filter(|entry| entry.writer.is_some());
        started.filter_map(|entry| entry.source.deadline()).min()
    }

    fn tick(&mut self, now: Monotonic, _: &mut Observations) {
        for Entry { source, writer, .. } in self.all.values_mut() {
            if let Some(writer) = writer {
                source.tick(now, writer);
            }
        }
    }

    fn observe(&mut self, session: TracingSession, observed: &Observed) {
        for entry in self.all.values_mut().filter(|entry| entry.session == session) {
            if let Some(writer) = &mut entry.writer {
                entry.source.observe(observed, writer);
            }
        }
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.all.values().flat_map(|entry| entry.source.descriptors()).collect()
    }
}
