//! [`EventSet`]: a set of event ids.

/// A set of the kernel's event ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventSet(Vec<u64>);

impl EventSet {
    pub(crate) fn insert(&mut self, id: u16) {
        let word = usize::from(id / 64);
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (id % 64);
    }

    pub(crate) fn contains(&self, id: u16) -> bool {
        self.0.get(usize::from(id / 64)).is_some_and(|word| word & (1 << (id % 64)) != 0)
    }

    /// Adds all ids of another set.
    pub(crate) fn extend(&mut self, other: &Self) {
        other.iter().for_each(|id| self.insert(id));
    }

    /// Iterates over the ids, in increasing order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (0..=u16::MAX).take(self.0.len() * 64).filter(|id| self.contains(*id))
    }
}
