/// Sorts a list, with little machine code for each type. Equal values may change places.
///
/// A heap sort: any order of `n` values takes at most `2 n log2(n)` comparisons and no memory.
/// [`sort_unstable`](slice::sort_unstable) is two to three times as fast, and takes 4 KB of machine
/// code for each type.
#[inline(never)]
pub fn sort<T: Ord>(list: &mut [T]) {
    // First the list becomes a heap, then its largest value goes to the end, again and again.
    for step in (0..list.len() + list.len() / 2).rev() {
        let (mut parent, len) = match step.checked_sub(list.len()) {
            Some(parent) => (parent, list.len()),
            None => {
                list.swap(0, step);
                (0, step)
            }
        };
        while let Some(left) = list[..len].get(2 * parent + 1) {
            let right_is_larger = list[..len].get(2 * parent + 2).is_some_and(|right| right > left);
            let child = 2 * parent + 1 + usize::from(right_is_larger);
            if list[parent] >= list[child] {
                break;
            }
            list.swap(parent, child);
            parent = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn any_list_is_sorted() {
        let mut random = 9_u64;
        for len in 0..200 {
            let numbers = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 40) % (len + 1)
            };
            let mut list: Vec<u64> = core::iter::repeat_with(numbers).take(len as usize).collect();
            let mut expected = list.clone();
            expected.sort_unstable();
            sort(&mut list);
            assert_eq!(list, expected);
            sort(&mut list);
            assert_eq!(list, expected);
            list.reverse();
            sort(&mut list);
            assert_eq!(list, expected);
        }
    }
}
