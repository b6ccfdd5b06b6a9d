//! Counters (`docs/spec/track-event.md` §16).

use std::borrow::Cow;

use esatto_schema::CounterDescriptorWriter;
use esatto_schema::counter_descriptor::Unit as UnitNumber;

use super::{Kind, Parent, Track, appearance_methods, place_methods};
use crate::hash::fnv;
use crate::track_uuid::COUNTER_MAGIC;

/// The unit of a counter's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Not known.
    Unspecified,
    /// Nanoseconds.
    TimeNs,
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Another unit, such as `"rpm"`.
    Named(&'static str),
}

/// A track of numbers over time.
///
/// ```
/// # esatto::categories! { static MEMORY = "memory"; }
/// use esatto::{CounterTrack, Unit};
///
/// static HEAP: CounterTrack = CounterTrack::new("heap").unit(Unit::Bytes).multiplier(1024);
/// esatto::counter!(MEMORY, &HEAP, 4);
///
/// // One per thread: it belongs to the thread that counts.
/// static DEPTH: CounterTrack = CounterTrack::new("depth").in_this_thread();
/// esatto::counter!(MEMORY, &DEPTH, 1.5);
/// ```
#[doc(alias = "gauge", alias = "histogram", alias = "metric", alias = "plot", alias = "increment", alias = "decrement")]
#[derive(Clone, Debug)]
pub struct CounterTrack {
    track: Track,
}

/// The counter's part of a descriptor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    unit: Unit,
    multiplier: i64,
    is_incremental: bool,
    y_axis_share_key: &'static str,
    categories: &'static [&'static str],
}

macro_rules! counter_field {
    ($self:ident, $field:ident = $value:expr) => {{
        if let Kind::Counter(counter) = &mut $self.track.kind {
            counter.$field = $value;
        }
        $self
    }};
}

impl CounterTrack {
    /// Makes a counter of this process. Counters of one process with equal names are the same.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self::with_id(name, 0)
    }

    /// Makes one of several counters of this process with the same name.
    #[must_use]
    pub const fn with_id(name: &'static str, id: u64) -> Self {
        let counter = Counter {
            unit: Unit::Unspecified,
            multiplier: 1,
            is_incremental: false,
            y_axis_share_key: "",
            categories: &[],
        };
        let seed = id ^ fnv(name.as_bytes()) ^ COUNTER_MAGIC;
        Self { track: Track::new(seed, Parent::Process, name, Kind::Counter(counter)) }
    }

    /// Makes a counter of this process with a name known at run time.
    #[must_use]
    pub fn dynamic(name: impl Into<String>) -> Self {
        let name = name.into();
        let mut counter = Self::new("");
        counter.track.seed = fnv(name.as_bytes()) ^ COUNTER_MAGIC;
        counter.track.name = Cow::Owned(name);
        counter
    }

    /// Sets the unit.
    #[must_use]
    pub const fn unit(mut self, unit: Unit) -> Self {
        counter_field!(self, unit = unit)
    }

    /// Sets how many units one of the value is: 1024 if it counts KiB and the unit is bytes. A
    /// number below 1 counts as 1.
    #[must_use]
    pub const fn multiplier(mut self, multiplier: i64) -> Self {
        counter_field!(self, multiplier = if multiplier < 1 { 1 } else { multiplier })
    }

    /// Writes differences to the previous value, which take less space if the counter grows slowly.
    /// The program still passes whole values. A counter that several threads set must not be
    /// incremental, because each thread knows only its own last value.
    #[must_use]
    pub const fn incremental(mut self) -> Self {
        counter_field!(self, is_incremental = true)
    }

    /// Draws the counters below one parent that have this key with the same scale.
    #[must_use]
    pub const fn share_y_axis(mut self, key: &'static str) -> Self {
        counter_field!(self, y_axis_share_key = key)
    }

    /// Adds categories of the counter, for the reader.
    #[must_use]
    pub const fn categories(mut self, categories: &'static [&'static str]) -> Self {
        counter_field!(self, categories = categories)
    }

    place_methods!(self.track);
    appearance_methods!(track.appearance);

    /// Returns the track on which the values are drawn.
    #[must_use]
    pub const fn track(&self) -> &Track {
        &self.track
    }
}

impl Track {
    /// Returns whether the values on the track are differences.
    pub(crate) const fn is_incremental(&self) -> bool {
        matches!(self.kind, Kind::Counter(Counter { is_incremental: true, .. }))
    }
}

impl Counter {
    pub(super) fn write(&self, out: &mut CounterDescriptorWriter<'_>) {
        for category in self.categories {
            out.categories(category);
        }
        match self.unit {
            Unit::Unspecified => {}
            Unit::TimeNs => drop(out.unit(UnitNumber::UNIT_TIME_NS)),
            Unit::Count => drop(out.unit(UnitNumber::UNIT_COUNT)),
            Unit::Bytes => drop(out.unit(UnitNumber::UNIT_SIZE_BYTES)),
            Unit::Named(name) => drop(out.unit_name(name)),
        }
        if self.multiplier != 1 {
            out.unit_multiplier(self.multiplier);
        }
        if self.is_incremental {
            out.is_incremental(true);
        }
        if !self.y_axis_share_key.is_empty() {
            out.y_axis_share_key(self.y_axis_share_key);
        }
    }
}
