//! Numbers that the service gives to clients and data (`docs/spec/service.md §1`).

/// A producer's number within the service; 0 is never used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProducerId(pub u16);

/// A writer's number within its producer; 0 is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WriterId(pub u16);

/// Number of a session, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionId(pub(crate) u64);

/// Number of a data source instance, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct InstanceId(pub(crate) u64);

/// Number of a central buffer in the whole service. It is free again when its session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct BufferId(pub(crate) u16);

impl BufferId {
    /// Converts the number that a peer names, without truncation.
    pub(crate) fn from_wire(id: u32) -> Option<Self> {
        u16::try_from(id).ok().filter(|&id| id != 0).map(Self)
    }
}

/// Largest id that producers give a writer (15 bits). The service accepts chunks of larger ids, but
/// no patches.
pub(crate) const MAX_PATCHED_WRITER: WriterId = WriterId(32767);

/// Converts the writer id that a peer names, without truncation.
pub(crate) fn writer_from_wire(id: u32) -> Option<WriterId> {
    u16::try_from(id).ok().filter(|&id| id != 0).map(WriterId)
}

/// Returns the first free number after `last`. It wraps and skips 0. Returns `None` if all are
/// taken.
pub(crate) fn next_free(last: u16, is_taken: impl Fn(u16) -> bool) -> Option<u16> {
    let mut id = last;
    for _ in 0..=u16::MAX {
        id = id.checked_add(1).unwrap_or(1);
        if !is_taken(id) {
            return Some(id);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_wrap_and_skip_zero_and_those_in_use() {
        assert_eq!(next_free(0, |_| false), Some(1));
        assert_eq!(next_free(u16::MAX, |id| id == 1), Some(2));
        assert_eq!(next_free(7, |_| true), None);
    }

    #[test]
    fn numbers_of_peers_are_not_truncated() {
        assert_eq!(BufferId::from_wire(65537), None);
        assert_eq!(BufferId::from_wire(0), None);
        assert_eq!(writer_from_wire(65537), None);
        assert_eq!(writer_from_wire(0), None);
        assert_eq!(writer_from_wire(65535), Some(WriterId(65535)));
    }
}
