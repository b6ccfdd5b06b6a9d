//! Forks are not noticed where no connection could be spoilt by them.

/// Would call the one before a fork and the others after it.
pub(crate) const fn watch(_before: fn(), _in_parent: fn(), _in_child: fn()) {}

/// There are none.
pub(crate) const fn close_descriptors() {}

/// Would call it in a child.
pub(crate) const fn in_child(_function: fn()) {}

pub(crate) const fn tell_child() {}

/// There is no child.
pub(crate) const fn copy_memory() {}

/// Where threads have numbers of ours, which stay.
pub(crate) const fn is_watched() -> bool {
    true
}
