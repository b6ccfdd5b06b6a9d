//! A list that allocates only when it is long.

use core::mem::{MaybeUninit, needs_drop};
use core::slice;

/// Up to `N` values lie here, more in a vector.
pub(super) struct List<T, const N: usize> {
    /// How many there are here; of no meaning once there are `more`.
    len: usize,
    here: [MaybeUninit<T>; N],
    /// All of them, as soon as there are more than `N`.
    more: Vec<T>,
}

impl<T, const N: usize> List<T, N> {
    #[inline(always)]
    pub(super) const fn new() -> Self {
        // Values that lie here are not dropped.
        const { assert!(!needs_drop::<T>() && N > 0) };
        Self { len: 0, here: [const { MaybeUninit::uninit() }; N], more: Vec::new() }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, value: T) {
        match self.here.get_mut(self.len) {
            Some(free) => {
                free.write(value);
                self.len += 1;
            }
            None => self.push_more(value),
        }
    }

    #[cold]
    #[inline(never)]
    fn push_more(&mut self, value: T) {
        if self.more.is_empty() {
            // SAFETY: `len` is `N`: all of them were written. They are moved, and not looked at here any more.
            self.more.extend(self.here.iter().map(|value| unsafe { value.assume_init_read() }));
        }
        self.more.push(value);
    }

    #[inline(always)]
    pub(super) fn as_slice(&self) -> &[T] {
        if !self.more.is_empty() {
            return &self.more;
        }
        // SAFETY: so many were written.
        unsafe { slice::from_raw_parts(self.here.as_ptr().cast(), self.len) }
    }

    #[inline(always)]
    pub(super) fn as_mut_slice(&mut self) -> &mut [T] {
        if !self.more.is_empty() {
            return &mut self.more;
        }
        // SAFETY: so many were written.
        unsafe { slice::from_raw_parts_mut(self.here.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_what_was_pushed_in_order() {
        for n in 0..9 {
            let mut list: List<usize, 3> = List::new();
            (0..n).for_each(|i| list.push(i));
            let expected: Vec<usize> = (0..n).collect();
            assert_eq!(list.as_slice(), expected);
            assert_eq!(list.as_mut_slice(), expected);
        }
    }
}
