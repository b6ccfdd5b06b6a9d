//! The appearance of tracks: order, nesting, merging.

use esatto_schema::TrackDescriptorWriter;
use esatto_schema::track_descriptor::{ChildTracksOrdering, SiblingMergeBehavior};

/// The order in which the children of a track are drawn. It is a hint. The reader orders children
/// that are threads or processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChildOrdering {
    /// The reader chooses.
    #[default]
    Unspecified,
    /// By name.
    Lexicographic,
    /// By the time of the first event.
    Chronological,
    /// By [`sibling_rank`](crate::Track::sibling_rank), lower ones first.
    Explicit,
}

/// Selects the tracks of one parent that are drawn as one.
///
/// Tracks are merged if both the way and the key are equal. They should agree in everything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Merge {
    /// The reader chooses: by name.
    #[default]
    Unspecified,
    /// Tracks with one name.
    ByName,
    /// None: this track is drawn alone.
    Never,
    /// Tracks with this key.
    ByKey(&'static str),
    /// Tracks with this number as their key, which equals no text.
    ByNumber(u64),
}

/// The descriptor's fields for the appearance of a track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Appearance {
    pub(super) description: &'static str,
    pub(super) child_ordering: ChildOrdering,
    pub(super) sibling_rank: i32,
    pub(super) merge: Merge,
    pub(super) apart_from_system_tracks: bool,
    pub(super) more: Option<fn(&mut TrackDescriptorWriter<'_>)>,
}

impl Appearance {
    pub(super) const fn new() -> Self {
        Self {
            description: "",
            child_ordering: ChildOrdering::Unspecified,
            sibling_rank: 0,
            merge: Merge::Unspecified,
            apart_from_system_tracks: false,
            more: None,
        }
    }

    pub(super) fn write(&self, out: &mut TrackDescriptorWriter<'_>) {
        if !self.description.is_empty() {
            out.description(self.description);
        }
        let ordering = match self.child_ordering {
            ChildOrdering::Unspecified => None,
            ChildOrdering::Lexicographic => Some(ChildTracksOrdering::LEXICOGRAPHIC),
            ChildOrdering::Chronological => Some(ChildTracksOrdering::CHRONOLOGICAL),
            ChildOrdering::Explicit => Some(ChildTracksOrdering::EXPLICIT),
        };
        if let Some(ordering) = ordering {
            out.child_ordering(ordering);
        }
        if self.sibling_rank != 0 {
            out.sibling_order_rank(self.sibling_rank);
        }
        use SiblingMergeBehavior as Behavior;
        match self.merge {
            Merge::Unspecified => {}
            Merge::ByName => {
                out.sibling_merge_behavior(Behavior::SIBLING_MERGE_BEHAVIOR_BY_TRACK_NAME);
            }
            Merge::Never => {
                out.sibling_merge_behavior(Behavior::SIBLING_MERGE_BEHAVIOR_NONE);
            }
            Merge::ByKey(key) => {
                out.sibling_merge_behavior(Behavior::SIBLING_MERGE_BEHAVIOR_BY_SIBLING_MERGE_KEY)
                    .sibling_merge_key(key);
            }
            Merge::ByNumber(key) => {
                out.sibling_merge_behavior(Behavior::SIBLING_MERGE_BEHAVIOR_BY_SIBLING_MERGE_KEY);
                out.sibling_merge_key_int(key);
            }
        }
        if self.apart_from_system_tracks {
            out.disallow_merging_with_system_tracks(true);
        }
        if let Some(more) = self.more {
            more(out);
        }
    }
}

/// The methods that place a track; `$track` leads from `self` to the `Track`.
macro_rules! place_methods {
    ($self:ident $(. $track:ident)*) => {
        /// Places the track below another one. Allocates; below a `static` use
        /// [`within`](Self::within).
        #[must_use]
        pub fn child_of(mut $self, parent: &$crate::Track) -> Self {
            $self $(.$track)*.shared_parent = Some(std::sync::Arc::new(parent.clone()));
            $self $(.$track)*.parent = $crate::event::track::Parent::Shared;
            $self
        }

        /// Places the track below one that lives as long as the program.
        #[must_use]
        pub const fn within(mut $self, parent: &'static $crate::Track) -> Self {
            $self $(.$track)*.parent = $crate::event::track::Parent::Static(parent);
            $self
        }

        /// Places the track at the root: it belongs to no process, and equal tracks of all
        /// processes are one.
        #[must_use]
        pub const fn at_root(mut $self) -> Self {
            $self $(.$track)*.parent = $crate::event::track::Parent::Root;
            $self
        }

        /// Makes one such track for each thread: it belongs to the thread that uses it. Each event
        /// asks the kernel for the thread id.
        #[must_use]
        pub const fn in_this_thread(mut $self) -> Self {
            $self $(.$track)*.parent = $crate::event::track::Parent::Thread;
            $self
        }
    };
}

/// The methods for the appearance of a track; the argument leads from `self` to the `Appearance`.
macro_rules! appearance_methods {
    ($($path:ident).+) => {
        /// Adds a text that explains the track to people. Leak a text made at run time
        /// (`String::leak`), once per track.
        #[must_use]
        pub const fn description(mut self, text: &'static str) -> Self {
            self.$($path).+.description = text;
            self
        }

        /// Orders the tracks below this one.
        #[must_use]
        pub const fn child_ordering(mut self, ordering: $crate::ChildOrdering) -> Self {
            self.$($path).+.child_ordering = ordering;
            self
        }

        /// Sets the place among the tracks of the same parent, if that orders them
        /// [explicitly](crate::ChildOrdering::Explicit). The default is 0.
        #[must_use]
        pub const fn sibling_rank(mut self, rank: i32) -> Self {
            self.$($path).+.sibling_rank = rank;
            self
        }

        /// Sets which tracks of the same parent are drawn as one with this.
        #[must_use]
        pub const fn merge(mut self, merge: $crate::Merge) -> Self {
            self.$($path).+.merge = merge;
            self
        }

        /// Adds any other field to the descriptor, each time it is written. `more` may run on any
        /// thread and must always write the same.
        #[must_use]
        pub const fn descriptor(mut self, more: fn(&mut $crate::schema::TrackDescriptorWriter<'_>)) -> Self {
            self.$($path).+.more = Some(more);
            self
        }
    };
}

pub(super) use {appearance_methods, place_methods};
