//! States (`docs/spec/track-event.md` §17).

use std::borrow::Cow;

use super::{Kind, Parent, Track, appearance_methods, place_methods};
use crate::track_uuid::{self, STATE_MAGIC};

/// A track that is in one state at a time, or in none.
///
/// A new state ends the one before, so there is nothing to close and nothing to nest. Readers since v57 of Perfetto draw them; older ones
/// pass over them.
#[derive(Clone, Debug)]
pub struct StateTrack {
    track: Track,
}

impl StateTrack {
    /// A state of this process. Those of one process with equal names are the same.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self::with_id(name, 0)
    }

    /// One of several of this process with the same name.
    #[must_use]
    pub const fn with_id(name: &'static str, id: u64) -> Self {
        let seed = id ^ track_uuid::fnv(name.as_bytes()) ^ STATE_MAGIC;
        Self { track: Track::new(seed, Parent::Process, name, Kind::State) }
    }

    /// One with a name made at run time.
    #[must_use]
    pub fn dynamic(name: impl Into<String>, id: u64) -> Self {
        let name = name.into();
        let mut state = Self::new("");
        state.track.seed = id ^ track_uuid::fnv(name.as_bytes()) ^ STATE_MAGIC;
        state.track.name = Cow::Owned(name);
        state
    }

    place_methods!(self.track);
    appearance_methods!(track.appearance);

    /// The track that the states are drawn on.
    #[must_use]
    pub const fn track(&self) -> &Track {
        &self.track
    }
}
