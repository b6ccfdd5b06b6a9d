//! [`Values`]: the counters of one process.

use esatto_schema::process_stats::ProcessWriter;

/// Counters of a process at one moment. Each may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Values {
    values: [u64; Slot::ALL.len()],
    present: u32,
}

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

    pub(crate) const fn is_empty(&self) -> bool {
        self.present == 0
    }

    /// Takes the values of `read` over, and returns those that are new or different.
    pub(crate) fn update(&mut self, read: &Self) -> Self {
        let mut changed = *read;
        for slot in Slot::ALL {
            let Some(value) = read.get(slot) else { continue };
            if self.get(slot) == Some(value) {
                changed.present &= !slot.bit();
            } else {
                self.set(slot, value);
            }
        }
        changed
    }

    pub(crate) fn write(&self, process: &mut ProcessWriter<'_>) {
        for slot in Slot::ALL {
            let Some(value) = self.get(slot) else { continue };
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
        let mut cache = Values::default();
        let mut read = Values::default();
        read.set(Slot::VmSize, 0);
        read.set(Slot::VmRss, 7);
        assert_eq!(cache.update(&read), read, "0 is a value");
        assert!(cache.update(&read).is_empty());
        read.set(Slot::VmRss, 8);
        let changed = cache.update(&read);
        assert_eq!((changed.get(Slot::VmSize), changed.get(Slot::VmRss)), (None, Some(8)));
    }
}
