//! Identity of tracks.

/// A track. Machines may use the same uuid for different tracks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TrackKey {
    pub(crate) machine: u32,
    pub(crate) uuid: u64,
}
