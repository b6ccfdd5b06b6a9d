//! Instances of the data source of track events.

use core::sync::atomic::AtomicU64;
use std::sync::Arc;

use esatto_instances::Slots;
use esatto_protozero::Fields;
use esatto_schema::{RING_BYTES_FIELD, TrackEventConfig};

use crate::destination::Destination;

/// Replaces dynamic names if the config filters them.
const FILTERED_NAME: &str = "FILTERED";

/// Instance of the data source of track events, as threads that write for it see it.
#[derive(Debug)]
#[expect(unnameable_types, reason = "an associated type of `raw::Sequence`, which the C library does not name")]
pub struct Instance {
    pub(crate) destination: Destination,
    pub(crate) config: Arc<TrackEventConfig>,
    pub(crate) options: Options,
    /// When it began to record; 0 before.
    pub(crate) enabled_ns: AtomicU64,
}

/// Options of a `TrackEventConfig` that change how events are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Timestamps are differences to the previous one of the sequence.
    pub(crate) incremental_timestamps: bool,
    /// Nanoseconds per unit of a timestamp; never 0.
    pub(crate) unit_ns: u64,
    /// Leave out debug annotations.
    pub(crate) filter_annotations: bool,
    /// Replace names that are made at run time.
    pub(crate) filter_dynamic_names: bool,
    /// Hand each event over at its end.
    pub(crate) intercepted: bool,
    /// Write with each event of a thread how long the thread has run.
    pub(crate) thread_time: bool,
    /// Time between two readings of the thread's run time; 0: at each event.
    pub(crate) thread_time_subsampling_ns: u64,
    /// Bytes after which a sequence starts over, so that a ring keeps the names of its events.
    pub(crate) renewal_bytes: u64,
}

/// Part of a ring that a sequence writes before it starts over. Other sequences write the rest.
const PART_OF_RING: u64 = 32;

/// Fewest bytes between two starts. A start takes about 500 bytes.
const MIN_RENEWAL_BYTES: u64 = 8 << 10;

impl Options {
    /// Returns whether events are written as they are by default.
    pub(crate) const fn is_plain(&self) -> bool {
        self.incremental_timestamps
            && self.unit_ns == 1
            && !self.filter_annotations
            && !self.filter_dynamic_names
            && !self.intercepted
            && !self.thread_time
    }

    /// Returns the text that the trace shows for a name that is made at run time.
    pub(crate) const fn shown_name<'a>(&self, name: &'a str) -> &'a str {
        if self.filter_dynamic_names { FILTERED_NAME } else { name }
    }

    pub(crate) fn new(config: &TrackEventConfig) -> Self {
        Self {
            incremental_timestamps: !config.disable_incremental_timestamps.unwrap_or(false),
            unit_ns: config.timestamp_unit_multiplier.unwrap_or(1).max(1),
            filter_annotations: config.filter_debug_annotations.unwrap_or(false),
            filter_dynamic_names: config.filter_dynamic_event_names.unwrap_or(false),
            intercepted: false,
            thread_time: config.enable_thread_time_sampling.unwrap_or(false),
            thread_time_subsampling_ns: config.thread_time_subsampling_ns.unwrap_or(0),
            renewal_bytes: u64::MAX,
        }
    }

    /// Adds what the service tells in the encoded `DataSourceConfig`.
    pub(crate) fn for_ring(self, config: &[u8]) -> Self {
        let ring = Fields::new(config).filter(|field| field.id == RING_BYTES_FIELD).last();
        let part = ring.map(|bytes| (bytes.as_u64() / PART_OF_RING).max(MIN_RENEWAL_BYTES));
        Self { renewal_bytes: part.unwrap_or(u64::MAX), ..self }
    }
}

/// Table of the instances of track events.
pub(crate) static TRACK_EVENTS: Slots<Instance> = Slots::new();
