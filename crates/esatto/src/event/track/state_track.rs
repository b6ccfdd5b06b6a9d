//! States (`docs/spec/track-event.md` §17).

use std::borrow::Cow;

use super::{Kind, Parent, Track, appearance_methods, place_methods};
use crate::hash::fnv;
use crate::track_uuid::STATE_MAGIC;

/// A track that is in one state at a time, or in none.
///
/// A new state ends the previous one, so nothing has to be closed or nested. Readers draw states
/// since Perfetto v57; older ones skip them.
#[doc(alias = "status")]
#[derive(Clone, Debug)]
pub struct StateTrack {
    track: Track,
}

impl StateTrack {
    /// Makes a state of this process. States of one process with equal names are the same.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self::with_id(name, 0)
    }

    /// Makes one of several states of this process with the same name.
    #[must_use]
    pub const fn with_id(name: &'static str, id: u64) -> Self {
        let seed = id ^ fnv(name.as_bytes()) ^ STATE_MAGIC;
        Self { track: Track::new(seed, Parent::Process, name, Kind::State) }
    }

    /// Makes a state with a name known at run time.
    #[must_use]
    pub fn dynamic(name: impl Into<String>, id: u64) -> Self {
        let name = name.into();
        let mut state = Self::new("");
        state.track.seed = id ^ fnv(name.as_bytes()) ^ STATE_MAGIC;
        state.track.name = Cow::Owned(name);
        state
    }

    place_methods!(self.track);
    appearance_methods!(track.appearance);

    /// Returns the track on which the states are drawn.
    #[must_use]
    pub const fn track(&self) -> &Track {
        &self.track
    }
}
