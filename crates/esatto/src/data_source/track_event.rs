//! The data source of track events.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use esatto_instances::{HeldSlots, Ticket};
use esatto_protozero::Owned;
use esatto_schema::{DataSourceConfigReader, DataSourceDescriptor, TrackEventConfig, TrackEventDescriptor};
use esatto_shm::ExhaustedPolicy;

use super::adoption::can_adopt_track_events;
use super::{AnySource, Assignment, BufferExhausted, Done, Flush, HeldInstances, listed_categories, session_observer};
use crate::category::registry;
use crate::random::random;
use crate::sequence::{Instance, Options, TRACK_EVENTS};
use crate::start_times;

/// The name of the data source.
const NAME: &str = "track_event";

/// The behaviour without shared memory, unless a config says otherwise. Set before the first
/// connection.
static EXHAUSTED: OnceLock<BufferExhausted> = OnceLock::new();

/// Sets what track events do when shared memory is full. The first call counts.
pub(crate) fn set_buffer_exhausted(exhausted: BufferExhausted) {
    let _ = EXHAUSTED.set(exhausted);
}

pub(super) struct TrackEvents {
    id: OnceLock<u64>,
}

impl TrackEvents {
    pub(super) const fn new() -> Self {
        Self { id: OnceLock::new() }
    }
}

impl HeldInstances for HeldSlots<'static, Instance> {
    fn forget(&mut self) {
        HeldSlots::forget(self);
    }
}

impl AnySource for TrackEvents {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&'static self) -> u64 {
        registry::version()
    }

    fn descriptor(&'static self) -> Vec<u8> {
        let descriptor = DataSourceDescriptor {
            name: Some(NAME.into()),
            id: Some(*self.id.get_or_init(|| random().max(1))),
            will_notify_on_start: Some(true),
            will_notify_on_stop: Some(true),
            handles_incremental_state_clear: Some(true),
            track_event_descriptor: Some(TrackEventDescriptor {
                available_categories: listed_categories::listed(),
                ..Default::default()
            }),
            ..Default::default()
        };
        descriptor.encode()
    }

    fn policy(&self, config: &[u8]) -> ExhaustedPolicy {
        let default = EXHAUSTED.get().copied().unwrap_or_default();
        BufferExhausted::of_config(config).unwrap_or(default).policy()
    }

    fn setup(&'static self, assignment: Assignment) -> Option<Ticket> {
        let slot = TRACK_EVENTS.free_slot()?;
        let config = track_event_config(&assignment.config);
        let intercepted = assignment.destination.is_intercepted();
        let options = Options { intercepted, ..Options::new(&config).for_ring(&assignment.config) };
        let instance = Instance {
            destination: assignment.destination,
            config: Arc::new(config),
            options,
            enabled_ns: AtomicU64::new(0),
        };
        let config = Arc::clone(&instance.config);
        let ticket = TRACK_EVENTS.occupy(slot, Arc::new(instance));
        session_observer::set_up(ticket.slot, &config);
        Some(ticket)
    }

    fn start(&self, ticket: Ticket) {
        if let Some(instance) = TRACK_EVENTS.redeem(ticket) {
            instance.destination.begin();
            instance.enabled_ns.store(start_times::now(), Ordering::Relaxed);
            registry::enable(ticket.slot, Arc::clone(&instance.config));
            session_observer::started(ticket.slot, &instance.config);
        }
    }

    fn is_recording(&self) -> bool {
        false
    }

    fn stop(&self, ticket: Ticket, done: Done) {
        if let Some(instance) = TRACK_EVENTS.redeem(ticket) {
            instance.destination.end();
        }
        session_observer::stopping(ticket.slot, done);
    }

    /// Observers delay a stop to write their last events. When they are done, the control thread
    /// switches the categories off.
    fn close(&self, _: Ticket) {}

    fn end(&self, ticket: Ticket) {
        TRACK_EVENTS.vacate(ticket, || registry::disable(ticket.slot));
    }

    fn tickets(&self) -> Vec<Ticket> {
        TRACK_EVENTS.tickets()
    }

    fn hold(&'static self) -> Box<dyn HeldInstances> {
        Box::new(TRACK_EVENTS.hold())
    }

    fn flush(&self, _: Ticket, flush: Flush) {
        // Threads write their events immediately. The service scrapes unfinished chunks.
        flush.complete();
    }

    fn clear_incremental_state(&self, ticket: Ticket) {
        session_observer::clearing(ticket.slot);
        TRACK_EVENTS.clear_incremental_state(ticket);
    }

    fn can_adopt(&self, startup: &[u8], session: &[u8]) -> bool {
        can_adopt_track_events(startup, session)
    }

    fn adopt(&self, ticket: Ticket, buffer: u16, policy: ExhaustedPolicy) {
        if let Some(instance) = TRACK_EVENTS.redeem(ticket) {
            instance.destination.adopt(buffer, policy);
        }
    }
}

/// Uses the readable part of a malformed configuration.
fn track_event_config(config: &[u8]) -> TrackEventConfig {
    let bytes = DataSourceConfigReader::new(config).track_event_config().map(|c| c.as_bytes()).unwrap_or_default();
    let mut config = TrackEventConfig::default();
    let _ = config.merge(bytes, esatto_protozero::MAX_DECODE_DEPTH);
    config
}
