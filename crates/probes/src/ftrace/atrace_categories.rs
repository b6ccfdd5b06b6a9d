//! The kernel's events of the categories of atrace (`docs/spec/cli.md` §23).

/// Events of each category: `GROUP/NAME`, or `GROUP/*` for those of the group that the schema has.
const CATEGORIES: &[(&str, &[&str])] = &[
    (
        "sched",
        &[
            "sched/sched_switch",
            "sched/sched_waking",
            "sched/sched_blocked_reason",
            "sched/sched_cpu_hotplug",
            "sched/sched_pi_setprio",
            "sched/sched_process_exit",
            "cgroup/*",
            "oom/oom_score_adj_update",
            "task/task_rename",
            "task/task_newtask",
            "systrace/*",
            "scm/*",
        ],
    ),
    (
        "freq",
        &[
            "power/cpu_frequency",
            "power/gpu_frequency",
            "power/clock_set_rate",
            "power/clock_disable",
            "power/clock_enable",
            "power/cpu_frequency_limits",
            "power/suspend_resume",
            "clk/clk_set_rate",
            "clk/clk_disable",
            "clk/clk_enable",
            "cpuhp/cpuhp_enter",
            "cpuhp/cpuhp_exit",
            "cpuhp/cpuhp_pause",
            "msm_bus/*",
        ],
    ),
    ("idle", &["power/cpu_idle"]),
    ("irq", &["irq/*", "ipi/*"]),
    ("irqoff", &["preemptirq/irq_enable", "preemptirq/irq_disable"]),
    ("preemptoff", &["preemptirq/preempt_enable", "preemptirq/preempt_disable"]),
    (
        "disk",
        &[
            "f2fs/f2fs_sync_file_enter",
            "f2fs/f2fs_sync_file_exit",
            "f2fs/f2fs_write_begin",
            "f2fs/f2fs_write_end",
            "f2fs/f2fs_iostat",
            "f2fs/f2fs_iostat_latency",
            "ext4/ext4_da_write_begin",
            "ext4/ext4_da_write_end",
            "ext4/ext4_sync_file_enter",
            "ext4/ext4_sync_file_exit",
            "block/block_bio_queue",
            "block/block_bio_complete",
            "ufs/ufshcd_command",
        ],
    ),
    ("mmc", &["mmc/*"]),
    ("load", &["cpufreq_interactive/*"]),
    ("sync", &["sync/*", "fence/*", "dma_fence/*"]),
    ("workq", &["workqueue/*"]),
    (
        "memreclaim",
        &[
            "vmscan/mm_vmscan_direct_reclaim_begin",
            "vmscan/mm_vmscan_direct_reclaim_end",
            "vmscan/mm_vmscan_memcg_reclaim_begin",
            "vmscan/mm_vmscan_memcg_reclaim_end",
            "vmscan/mm_vmscan_kswapd_wake",
            "vmscan/mm_vmscan_kswapd_sleep",
            "lowmemorykiller/*",
        ],
    ),
    ("regulators", &["regulator/*"]),
    (
        "binder_driver",
        &[
            "binder/binder_transaction",
            "binder/binder_transaction_received",
            "binder/binder_transaction_alloc_buf",
            "binder/binder_set_priority",
        ],
    ),
    ("binder_lock", &["binder/binder_lock", "binder/binder_locked", "binder/binder_unlock"]),
    ("pagecache", &["filemap/*"]),
    (
        "memory",
        &[
            RSS_STAT,
            "kmem/ion_heap_grow",
            "kmem/ion_heap_shrink",
            "ion/ion_stat",
            "mm_event/mm_event_record",
            "dmabuf_heap/dma_heap_stat",
            "gpu_mem/gpu_mem_total",
        ],
    ),
    ("thermal", &["thermal/thermal_temperature", "thermal/cdev_update"]),
    ("i2c", &["i2c/*"]),
    ("membus", &["memory_bus/*"]),
    ("ion", &["kmem/ion_alloc_buffer_start"]),
    ("gfx", &["mdss/*", "mali/*", "sde/*", "dpu/*", "g2d/*", "panel/*"]),
    ("camera", &["lwis/*"]),
];

/// Counter of a process's memory, written at each change.
pub(crate) const RSS_STAT: &str = "kmem/rss_stat";
/// The same counter, written less often. Only some systems make this event.
pub(crate) const RSS_STAT_THROTTLED: &str = "synthetic/rss_stat_throttled";

/// Returns the events of a category. Categories of user space have none.
pub(crate) fn events_of(category: &str) -> &'static [&'static str] {
    CATEGORIES.iter().find(|(name, _)| *name == category).map_or(&[], |(_, events)| events)
}

/// Categories that only switch on programs of Android. On Linux they do nothing.
const OF_USER_SPACE: [&str; 26] = [
    "adb",
    "aidl",
    "am",
    "audio",
    "bionic",
    "core_services",
    "dalvik",
    "database",
    "hal",
    "input",
    "network",
    "nnapi",
    "pdx",
    "pm",
    "power",
    "res",
    "rro",
    "rs",
    "sm",
    "ss",
    "thermal_tj",
    "vibrator",
    "video",
    "view",
    "webview",
    "wm",
];

/// Returns the categories with events of the kernel.
pub fn atrace_categories() -> impl Iterator<Item = &'static str> {
    CATEGORIES.iter().map(|(name, _)| *name)
}

/// Returns whether there is a category of this name, be it one that does nothing on Linux.
#[must_use]
pub fn is_atrace_category(name: &str) -> bool {
    OF_USER_SPACE.contains(&name) || atrace_categories().any(|own| own == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_of_the_kernel_and_of_programs_are_known() {
        for known in ["sched", "gfx", "am", "webview"] {
            assert!(is_atrace_category(known), "{known}");
        }
        assert!(!is_atrace_category("schedd") && !is_atrace_category(""));
    }
}
