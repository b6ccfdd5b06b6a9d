//! Rules of the format that a trace broke, with counts.

use std::collections::BTreeMap;

/// Key of the ends of slices whose begin was not recorded.
pub const UNMATCHED_ENDS: &str = "slice_ends_without_begin";

/// Key of the events that readers leave out because a track above theirs is not described.
pub const MISSING_ANCESTORS: &str = "events_on_tracks_without_ancestor";

/// A mistake in an event, a descriptor or a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Problem {
    UnresolvedName,
    UnresolvedCategory,
    UnresolvedAnnotationName,
    UnresolvedString,
    AnnotationWithoutName,
    EventWithoutSequence,
    EventWithoutTimestamp,
    EventWithoutType,
    LegacyPhase,
    CounterWithoutTrack,
    CounterWithoutValue,
    ExtraCounters,
    StateWithoutTrack,
    DescriptorIncomplete,
    DescriptorConflict,
    MissingAncestor,
    UnmatchedEnd,
    MisplacedEnd,
    ClockUnresolved,
    ClockSnapshotInvalid,
    UnrelatedMachine,
    FlagsWithoutSequence,
}

impl Problem {
    /// Returns the key in reports.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::UnresolvedName => "unresolved_event_names",
            Self::UnresolvedCategory => "unresolved_categories",
            Self::UnresolvedAnnotationName => "unresolved_annotation_names",
            Self::UnresolvedString => "unresolved_strings",
            Self::AnnotationWithoutName => "annotations_without_name",
            Self::EventWithoutSequence => "events_without_sequence",
            Self::EventWithoutTimestamp => "events_without_timestamp",
            Self::EventWithoutType => "events_without_type",
            Self::LegacyPhase => "legacy_events_not_read",
            Self::CounterWithoutTrack => "counters_without_track",
            Self::CounterWithoutValue => "counters_without_value",
            Self::ExtraCounters => "extra_counters_without_track",
            Self::StateWithoutTrack => "states_without_track",
            Self::DescriptorIncomplete => "track_descriptors_incomplete",
            Self::DescriptorConflict => "track_descriptors_conflicting",
            Self::MissingAncestor => MISSING_ANCESTORS,
            Self::UnmatchedEnd => UNMATCHED_ENDS,
            Self::MisplacedEnd => "slice_ends_over_open_slices",
            Self::ClockUnresolved => "timestamps_of_unknown_clocks",
            Self::ClockSnapshotInvalid => "clock_snapshots_invalid",
            Self::UnrelatedMachine => "machines_without_clock_sync",
            Self::FlagsWithoutSequence => "packets_that_need_a_sequence",
        }
    }

    /// Returns whether an interned value was missing.
    pub(crate) fn is_interning(self) -> bool {
        matches!(
            self,
            Self::UnresolvedName | Self::UnresolvedCategory | Self::UnresolvedAnnotationName | Self::UnresolvedString
        )
    }
}

#[derive(Debug, Default)]
pub(crate) struct Problems(BTreeMap<Problem, u64>);

impl Problems {
    pub(crate) fn count(&mut self, problem: Problem) {
        self.add(problem, 1);
    }

    #[inline]
    pub(crate) fn add(&mut self, problem: Problem, number: u64) {
        if number > 0 {
            self.add_some(problem, number);
        }
    }

    #[cold]
    fn add_some(&mut self, problem: Problem, number: u64) {
        *self.0.entry(problem).or_default() += number;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Problem, u64)> + '_ {
        self.0.iter().map(|(&problem, &number)| (problem, number))
    }
}
