//! Data sources that known programs have, and the fields of their configs.

use esatto_probes::Probes;

use crate::empty_recording::WELL_KNOWN;

/// Names of data sources of Perfetto, Android and Chrome that are not in [`WELL_KNOWN`].
const OTHERS: &[&str] = &[
    "android.aflags",
    "android.app_wakelocks",
    "android.cpu_per_uid",
    "android.game_interventions",
    "android.input.inputevent",
    "android.inputmethod",
    "android.kernel_wakelocks",
    "android.network_packets",
    "android.polled_state",
    "android.protolog",
    "android.statsd",
    "android.surfaceflinger.frame",
    "android.surfaceflinger.layers",
    "android.surfaceflinger.transactions",
    "android.sys_stats",
    "android.system_property",
    "android.user_list",
    "android.windowmanager",
    "android.hardware.camera",
    "com.google.cpm",
    "com.android.server.wm.WindowManager",
    "dev.v8.code",
    "gpu.counters.adreno",
    "gpu.counters.i915",
    "gpu.counters.mali",
    "gpu.log",
    "gpu.memory",
    "gpu.renderstages",
    "gpu.renderstages.intel",
    "gpu.renderstages.msm",
    "org.chromium.background_scenario_metrics",
    "org.chromium.histogram_sample",
    "org.chromium.memory_instrumentation",
    "org.chromium.native_heap_profiler",
    "org.chromium.sampler_profiler",
    "org.chromium.system_metrics",
    "org.chromium.system_metrics_low_frequency",
    "org.chromium.trace_metadata2",
    "perfetto.metatrace",
    "vulkan.memory_tracker",
    "windows.etw",
];

/// Fields of a `DataSourceConfig` that only some data sources read: name and number of the field,
/// and their names. The name of one that ends in a dot stands for all that begin like it.
/// (`docs/spec/service.md` §8)
pub(crate) const CONFIGS: &[(&str, u32, &[&str])] = &[
    ("ftrace_config", 100, &["linux.ftrace"]),
    ("inode_file_config", 102, &["linux.inode_file_map"]),
    ("process_stats_config", 103, &["linux.process_stats"]),
    ("sys_stats_config", 104, &["linux.sys_stats", "android.sys_stats"]),
    ("heapprofd_config", 105, &["android.heapprofd"]),
    ("android_power_config", 106, &["android.power"]),
    ("android_log_config", 107, &["android.log"]),
    ("gpu_counter_config", 108, &["gpu."]),
    ("packages_list_config", 109, &["android.packages_list"]),
    ("java_hprof_config", 110, &["android.java_hprof", "android.java_hprof.oom"]),
    ("perf_event_config", 111, &["linux.perf"]),
    ("android_polled_state_config", 114, &["android.polled_state"]),
    ("system_info_config", 119, &["linux.system_info"]),
    ("frozen_ftrace_config", 136, &["linux.frozen_ftrace"]),
    ("journald_config", 141, &["linux.systemd_journald"]),
    ("process_smaps_config", 146, &["linux.smaps"]),
];

/// Returns the names of all known data sources.
pub(crate) fn names() -> Vec<String> {
    let others = WELL_KNOWN.iter().chain(OTHERS).map(|&name| name.to_owned());
    Probes::data_sources().into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_config;

    #[test]
    fn the_fields_are_those_of_the_schema() {
        let message = trace_config::message().unwrap();
        let config = message.parent_pool().get_message_by_name("perfetto.protos.DataSourceConfig").unwrap();
        for (name, number, _) in CONFIGS {
            assert_eq!(config.get_field(*number).unwrap_or_else(|| panic!("{number}")).name(), *name);
        }
    }

    #[test]
    fn no_name_is_there_twice() {
        let all: Vec<_> = WELL_KNOWN.iter().chain(OTHERS).collect();
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
    }
}
