//! A list that only grows and is read without a lock.

use std::sync::OnceLock;

/// A list of values that live as long as the program.
#[derive(Debug)]
pub(crate) struct AppendList<T: 'static> {
    first: OnceLock<&'static Node<T>>,
}

#[derive(Debug)]
struct Node<T: 'static> {
    value: T,
    next: OnceLock<&'static Self>,
}

impl<T> AppendList<T> {
    pub(crate) const fn new() -> Self {
        Self { first: OnceLock::new() }
    }

    /// Returns the value that `is` accepts.
    pub(crate) fn find(&self, is: impl Fn(&T) -> bool) -> Option<&'static T> {
        let mut link = &self.first;
        while let Some(node) = link.get() {
            if is(&node.value) {
                return Some(&node.value);
            }
            link = &node.next;
        }
        None
    }

    /// Returns the value that `is` accepts, and adds `value` if there is none. Allocates memory
    /// that is never freed.
    pub(crate) fn find_or_add(&self, is: impl Fn(&T) -> bool, value: impl FnOnce() -> T) -> &'static T {
        if let Some(known) = self.find(&is) {
            return known;
        }
        let new: &'static Node<T> = Box::leak(Box::new(Node { value: value(), next: OnceLock::new() }));
        let mut link = &self.first;
        loop {
            // Another thread may have added the same value, or another one.
            let node = *link.get_or_init(|| new);
            if is(&node.value) {
                return &node.value;
            }
            link = &node.next;
        }
    }
}
