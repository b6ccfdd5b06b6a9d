//! Forks, on systems without connections that they could break: they are not noticed.

/// Does nothing.
pub(crate) const fn watch(_before: fn(), _in_parent: fn(), _in_child: fn()) {}

/// Does nothing: there are no such descriptors.
pub(crate) const fn close_descriptors() {}

/// Does nothing.
pub(crate) const fn in_child(_function: fn()) {}

pub(crate) const fn tell_child() {}

/// Does nothing: there is no child.
pub(crate) const fn copy_memory() {}

/// Returns true, because the numbers of threads stay valid.
pub(crate) const fn is_watched() -> bool {
    true
}

/// A descriptor, which children of a fork keep.
#[cfg(feature = "in-process")]
#[derive(Debug)]
pub(crate) struct OwnedByParent;

#[cfg(feature = "in-process")]
impl OwnedByParent {
    /// Does nothing.
    pub(crate) const fn of(_: &std::fs::File) -> Self {
        Self
    }
}
