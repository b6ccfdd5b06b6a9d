//! [`Values`]: the counters of one process.

use esatto_schema::process_stats::ProcessWriter;

/// Counters of a process at one moment. Each may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Values {
    values: [u64; Slot::ALL.len()],
    present: u32,
}

/// Counters that were written in a cache period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written(u32);

/// One counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    VmSize,
    VmRss,
    RssAnon,
    RssFile,
    RssShmem,
    VmSwap,
    VmLocked,
    VmHwm,
    /// The bits of an `i64`.
    OomScoreAdj,
    RollupRss,
    RollupPss,
    RollupPssAnon,
    RollupPssFile,
    RollupPssShmem,
    RollupSwapPss,
    RuntimeUser,
    RuntimeKernel,
    DmabufRss,
}

impl Slot {
    const ALL: [Self; 18] = [
        Self::VmSize,
        Self::VmRss,
        Self::RssAnon,
        Self::RssFile,
        Self::RssShmem,
        Self::VmSwap,
        Self::VmLocked,
        Self::VmHwm,
        Self::OomScoreAdj,
        Self::RollupRss,
        Self::RollupPss,
        Self::RollupPssAnon,
        Self::RollupPssFile,
        Self::RollupPssShmem,
        Self::RollupSwapPss,
        Self::RuntimeUser,
        Self::RuntimeKernel,
        Self::DmabufRss,
    ];

    /// Those of `stat`.
    pub(crate) const RUNTIME: [Self; 2] = [Self::RuntimeUser, Self::RuntimeKernel];

    /// Those of `status`.
    pub(crate) const MEMORY: [Self; 8] = [
        Self::VmSize,
        Self::VmRss,
        Self::RssAnon,
        Self::RssFile,
        Self::RssShmem,
        Self::VmSwap,
        Self::VmLocked,
        Self::VmHwm,
    ];

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl Values {
    pub(crate) fn set(&mut self, slot: Slot, value: u64) {
        self.values[slot as usize] = value;
        self.present |= slot.bit();
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<u64> {
        (self.present & slot.bit() != 0).then_some(self.values[slot as usize])
    }

    /// Returns the counters that are present.
    fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        let present = self.present;
        Slot::ALL.into_iter().filter(move |slot| present & slot.bit() != 0)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.present == 0
    }

    /// Takes over the values of `read`. Returns those that are different from before, or were not
    /// written in this cache period.
    pub(crate) fn update(&mut self, read: &Self, written: &mut Written) -> Self {
        let mut changed = Self { values: read.values, present: 0 };
        for slot in read.slots() {
            let value = read.values[slot as usize];
            if self.get(slot) != Some(value) || written.0 & slot.bit() == 0 {
                changed.present |= slot.bit();
                self.set(slot, value);
            }
        }
        written.0 |= changed.present;
        changed
    }

    /// Takes some counters from `earlier`.
    pub(crate) fn copy(&mut self, slots: &[Slot], earlier: &Self) {
        for &slot in slots {
            if let Some(value) = earlier.get(slot) {
                self.set(slot, value);
            }
        }
    }

    pub(crate) fn write(&self, process: &mut ProcessWriter<'_>) {
        for slot in self.slots() {
            let value = self.values[slot as usize];
            match slot {
                Slot::VmSize => process.vm_size_kb(value),
                Slot::VmRss => process.vm_rss_kb(value),
                Slot::RssAnon => process.rss_anon_kb(value),
                Slot::RssFile => process.rss_file_kb(value),
                Slot::RssShmem => process.rss_shmem_kb(value),
                Slot::VmSwap => process.vm_swap_kb(value),
                Slot::VmLocked => process.vm_locked_kb(value),
                Slot::VmHwm => process.vm_hwm_kb(value),
                Slot::OomScoreAdj => process.oom_score_adj(value as i64),
                Slot::RollupRss => process.smr_rss_kb(value),
                Slot::RollupPss => process.smr_pss_kb(value),
                Slot::RollupPssAnon => process.smr_pss_anon_kb(value),
                Slot::RollupPssFile => process.smr_pss_file_kb(value),
                Slot::RollupPssShmem => process.smr_pss_shmem_kb(value),
                Slot::RollupSwapPss => process.smr_swap_pss_kb(value),
                Slot::RuntimeUser => process.runtime_user_mode(value),
                Slot::RuntimeKernel => process.runtime_kernel_mode(value),
                Slot::DmabufRss => process.dmabuf_rss_kb(value),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_and_different_values_are_written() {
        let (mut known, mut written) = (Values::default(), Written::default());
        let mut read = Values::default();
        read.set(Slot::VmSize, 0);
        read.set(Slot::VmRss, 7);
        assert_eq!(known.update(&read, &mut written), read, "0 is a value");
        assert!(known.update(&read, &mut written).is_empty());
        read.set(Slot::VmRss, 8);
        let changed = known.update(&read, &mut written);
        assert_eq!((changed.get(Slot::VmSize), changed.get(Slot::VmRss)), (None, Some(8)));
        assert_eq!(known.update(&read, &mut Written::default()), read, "another cache period");
    }
}
