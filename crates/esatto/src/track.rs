//! Tracks: the lanes that slices, instants and counters are drawn on.

use std::borrow::Cow;
use std::sync::Arc;

use esatto_schema::TrackDescriptorWriter;
use esatto_schema::counter_descriptor::Unit as UnitNumber;

use crate::ids::{self, COUNTER_MAGIC, NAMED_TRACK_MAGIC};

/// A lane of its own for events.
///
/// Events without a track appear on the lane of their thread. A track is described in the trace by itself the
/// first time a thread uses it, its ancestors included. Equal tracks made in different places are one.
///
/// ```
/// # esatto::categories! { static NET = "net"; }
/// use esatto::Track;
///
/// let connection = Track::process(7).named("connection 7");
/// esatto::begin!(NET, track: &connection, "transfer");
/// esatto::end!(NET, track: &connection);
/// ```
#[derive(Clone, Debug)]
pub struct Track {
    /// The identity, but for the parent's.
    seed: u64,
    parent: Parent,
    name: Cow<'static, str>,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Parent {
    Root,
    Process,
    Track(Arc<Track>),
}

#[derive(Clone, Debug)]
enum Kind {
    Events,
    Counter { unit: Unit },
}

impl Track {
    /// A track of this process. Equal ids of one process are the same track.
    #[must_use]
    pub const fn process(id: u64) -> Self {
        Self { seed: id, parent: Parent::Process, name: Cow::Borrowed(""), kind: Kind::Events }
    }

    /// A track that belongs to no process: equal ids of all processes are the same track.
    #[must_use]
    pub const fn global(id: u64) -> Self {
        Self { seed: id, parent: Parent::Root, name: Cow::Borrowed(""), kind: Kind::Events }
    }

    /// A track of this process with a name, which is part of its identity: one per (name, id).
    #[must_use]
    pub const fn with_name(name: &'static str, id: u64) -> Self {
        let seed = id ^ ids::fnv(name.as_bytes()) ^ NAMED_TRACK_MAGIC;
        Self { seed, parent: Parent::Process, name: Cow::Borrowed(name), kind: Kind::Events }
    }

    /// The same track with a name to show.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = name.into();
        self
    }

    /// The same track below another one.
    #[must_use]
    pub fn child_of(mut self, parent: &Self) -> Self {
        self.parent = Parent::Track(Arc::new(parent.clone()));
        self
    }

    /// The id in the trace, unique among all processes.
    #[must_use]
    pub fn uuid(&self) -> u64 {
        self.seed ^ self.parent_uuid()
    }

    fn parent_uuid(&self) -> u64 {
        match &self.parent {
            Parent::Root => 0,
            Parent::Process => ids::process_uuid(),
            Parent::Track(track) => track.uuid(),
        }
    }

    /// The parent, if it is not the process or nothing: it has to be described before this track.
    pub(crate) fn parent_track(&self) -> Option<&Self> {
        match &self.parent {
            Parent::Track(track) => Some(track),
            Parent::Root | Parent::Process => None,
        }
    }

    /// Writes the descriptor.
    pub(crate) fn describe(&self, out: &mut TrackDescriptorWriter<'_>) {
        out.uuid(self.uuid());
        let parent = self.parent_uuid();
        if parent != 0 {
            out.parent_uuid(parent);
        }
        if !self.name.is_empty() {
            out.name(&*self.name);
        }
        if let Kind::Counter { unit } = &self.kind {
            let mut counter = out.counter();
            match unit {
                Unit::Unspecified => {}
                Unit::TimeNs => drop(counter.unit(UnitNumber::UNIT_TIME_NS)),
                Unit::Count => drop(counter.unit(UnitNumber::UNIT_COUNT)),
                Unit::Bytes => drop(counter.unit(UnitNumber::UNIT_SIZE_BYTES)),
                Unit::Named(name) => drop(counter.unit_name(name)),
            }
        }
    }
}

/// What the values of a counter count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nothing that is told.
    Unspecified,
    /// Nanoseconds.
    TimeNs,
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Something with a name of its own, such as `"rpm"`.
    Named(&'static str),
}

/// A track of numbers over time.
///
/// ```
/// # esatto::categories! { static MEMORY = "memory"; }
/// use esatto::{CounterTrack, Unit};
///
/// static HEAP: CounterTrack = CounterTrack::new("heap").unit(Unit::Bytes);
/// esatto::counter!(MEMORY, &HEAP, 4096);
/// ```
#[derive(Clone, Debug)]
pub struct CounterTrack {
    track: Track,
}

impl CounterTrack {
    /// A counter of this process. Counters of one process with equal names are the same.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            track: Track {
                seed: ids::fnv(name.as_bytes()) ^ COUNTER_MAGIC,
                parent: Parent::Process,
                name: Cow::Borrowed(name),
                kind: Kind::Counter { unit: Unit::Unspecified },
            },
        }
    }

    /// A counter of this process with a name made at run time.
    #[must_use]
    pub fn dynamic(name: impl Into<String>) -> Self {
        let name = name.into();
        let mut counter = Self::new("");
        counter.track.seed = ids::fnv(name.as_bytes()) ^ COUNTER_MAGIC;
        counter.track.name = Cow::Owned(name);
        counter
    }

    /// Sets the unit.
    #[must_use]
    pub const fn unit(mut self, unit: Unit) -> Self {
        if let Kind::Counter { unit: u } = &mut self.track.kind {
            *u = unit;
        }
        self
    }

    /// The same counter below another track.
    #[must_use]
    pub fn child_of(mut self, parent: &Track) -> Self {
        self.track = self.track.child_of(parent);
        self
    }

    /// The track that the values are drawn on.
    #[must_use]
    pub const fn track(&self) -> &Track {
        &self.track
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_follow_the_spec() {
        let process = ids::process_uuid();
        assert_eq!(Track::process(3).uuid(), 3 ^ process);
        assert_eq!(Track::global(3).uuid(), 3);
        assert_eq!(Track::with_name("mytrack", 0).uuid(), 0x8182_0cb4_e204_bfb2 ^ NAMED_TRACK_MAGIC ^ process);
        assert_eq!(CounterTrack::new("mytrack").track.uuid(), 0x8182_0cb4_e204_bfb2 ^ COUNTER_MAGIC ^ process);
        assert_eq!(CounterTrack::dynamic("mytrack").track.uuid(), CounterTrack::new("mytrack").track.uuid());
        let parent = Track::global(8);
        assert_eq!(Track::process(3).child_of(&parent).uuid(), 3 ^ 8);
    }
}
