//! Forks are not noticed where no connection could be spoilt by them.

/// Would call the one before a fork and the others after it.
pub(crate) const fn watch(_before: fn(), _in_parent: fn(), _in_child: fn()) {}

/// There are none.
pub(crate) const fn close_descriptors() {}

/// Where threads have numbers of ours, which stay.
pub(crate) const fn is_watched() -> bool {
    true
}
