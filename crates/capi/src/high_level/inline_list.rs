//! A list that allocates only when it is long.

use core::mem::{MaybeUninit, needs_drop};
use core::slice;

/// A list whose first `N` values are in the list itself. A longer one is in a vector.
pub(super) struct InlineList<T, const N: usize> {
    /// Number of values in `inline`. Without meaning once `all` is in use.
    len: usize,
    inline: [MaybeUninit<T>; N],
    /// All values, if there are more than `N`.
    all: Vec<T>,
}

impl<T, const N: usize> InlineList<T, N> {
    #[inline(always)]
    pub(super) const fn new() -> Self {
        // Values in `inline` are not dropped.
        const { assert!(!needs_drop::<T>() && N > 0) };
        Self { len: 0, inline: [const { MaybeUninit::uninit() }; N], all: Vec::new() }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, value: T) {
        match self.inline.get_mut(self.len) {
            Some(free) => {
                free.write(value);
                self.len += 1;
            }
            None => self.push_to_all(value),
        }
    }

    #[cold]
    #[inline(never)]
    fn push_to_all(&mut self, value: T) {
        if self.all.is_empty() {
            // SAFETY: `len` is `N`, so all of them were written. They are moved, and never read in
            // `inline` again.
            self.all.extend(self.inline.iter().map(|value| unsafe { value.assume_init_read() }));
        }
        self.all.push(value);
    }

    #[inline(always)]
    pub(super) fn as_slice(&self) -> &[T] {
        if !self.all.is_empty() {
            return &self.all;
        }
        // SAFETY: that many were written.
        unsafe { slice::from_raw_parts(self.inline.as_ptr().cast(), self.len) }
    }

    #[inline(always)]
    pub(super) fn as_mut_slice(&mut self) -> &mut [T] {
        if !self.all.is_empty() {
            return &mut self.all;
        }
        // SAFETY: that many were written.
        unsafe { slice::from_raw_parts_mut(self.inline.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_the_order_in_which_they_were_pushed() {
        for n in 0..9 {
            let mut list: InlineList<usize, 3> = InlineList::new();
            (0..n).for_each(|i| list.push(i));
            let expected: Vec<usize> = (0..n).collect();
            assert_eq!(list.as_slice(), expected);
            assert_eq!(list.as_mut_slice(), expected);
        }
    }
}
