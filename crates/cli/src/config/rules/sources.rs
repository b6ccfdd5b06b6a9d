//! Data sources that no known program has, or that record nothing.

use esatto_protozero::{Fields, Owned as _};
use esatto_schema::{
    DataSourceConfig, FtraceConfig, ProcessStatsConfig, SysStatsConfig, TraceConfig, TrackEventConfig,
};

use crate::config::finding::Finding;
use crate::config::known_sources::{self, CONFIGS};
use crate::empty_recording::wants_kernel_events;
use crate::progress::Size;
use crate::unimplemented_sources::not_implemented;
use esatto_daemon_program::closest;
use esatto_probes::{DEFAULT_SCAN_DELAY_MS, atrace_categories, closest_ftrace_event, is_atrace_category};

/// A kernel buffer of a CPU that hardly anybody means: 1 GiB.
const LARGE_KERNEL_BUFFER_KB: u64 = 1 << 20;
/// Unknown events of a data source that are told.
const LISTED_EVENTS: usize = 100;
/// Events of a data source that are compared with the known ones.
const LOOKED_AT_EVENTS: usize = 1000;

pub(super) fn findings(config: &TraceConfig) -> Vec<Finding> {
    let known = known_sources::names();
    let has_ftrace = config
        .data_sources
        .iter()
        .filter_map(|source| source.config.as_deref())
        .any(|source| name_of(source) == "linux.ftrace");
    let duration_ms = config.duration_ms.unwrap_or(0);
    let mut findings = Vec::new();
    for (i, source) in config.data_sources.iter().enumerate() {
        let path = format!("data_sources[{i}]");
        if let Some(twin) = config.data_sources[..i].iter().position(|earlier| earlier == source) {
            let why = format!("data_sources[{twin}] is the same: its events are recorded twice");
            findings.push(Finding::warning(&path, why).remedy("leave one out"));
        }
        let Some(config) = source.config.as_deref().filter(|config| !name_of(config).is_empty()) else {
            let why = "a data source without a name records nothing";
            findings.push(Finding::warning(path, why).remedy("add for instance `name: \"track_event\"` to its config"));
            continue;
        };
        let path = path + ".config";
        let name = name_of(config);
        if let Some(why) = not_implemented(&name) {
            let why = format!("the data source {name:?} is {why}");
            let finding = Finding::warning(format!("{path}.name"), why);
            findings.push(finding.remedy("start that program before the recording"));
        }
        match unknown(&name, &known, &path) {
            Some(finding) => findings.push(finding),
            None => findings.extend(foreign_configs(config, &name, &path)),
        }
        match &name[..] {
            "linux.ftrace" => findings.extend(ftrace(config, &path)),
            "linux.process_stats" => findings.extend(process_stats(config, has_ftrace, &path)),
            "linux.sys_stats" => findings.extend(sys_stats(config, &path)),
            "linux.inode_file_map" => findings.extend(inode_file_map(config, duration_ms, &path)),
            "track_event" => {
                findings.extend(track_event(config, &path));
                findings.extend(words_of_the_command_line(config, &path));
            }
            _ => {}
        }
    }
    findings
}

fn name_of(config: &DataSourceConfig) -> String {
    config.name.as_ref().map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned()).unwrap_or_default()
}

fn unknown(name: &str, known: &[String], path: &str) -> Option<Finding> {
    if known.iter().any(|known| known == name) {
        return None;
    }
    let finding = Finding::warning(format!("{path}.name"), format!("no known program has the data source {name:?}"));
    Some(match closest(name, known.iter().map(String::as_str)) {
        Some(close) => finding.remedy(format!("did you mean {close:?}?")),
        None => {
            finding.remedy("if it is of a program of yours, this is no mistake; `esatto list` shows the connected ones")
        }
    })
}

/// Tells of configs that this data source does not read.
fn foreign_configs(config: &DataSourceConfig, name: &str, path: &str) -> Vec<Finding> {
    let encoded = config.encode();
    let has = |number: u32| Fields::new(&encoded).any(|field| field.id == number);
    let reads = |readers: &[&str]| {
        readers.iter().any(|&reader| reader == name || reader.ends_with('.') && name.starts_with(reader))
    };
    let foreign = CONFIGS.iter().filter(|(_, number, readers)| !reads(readers) && has(*number));
    foreign
        .map(|(field, _, readers)| {
            let why = format!("{name:?} does not read {field}");
            Finding::warning(format!("{path}.{field}"), why).remedy(format!("it belongs to {:?}", readers[0]))
        })
        .collect()
}

fn ftrace(config: &DataSourceConfig, path: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !wants_kernel_events(config) {
        let finding = Finding::warning(format!("{path}.name"), "linux.ftrace without an event records nothing");
        findings.push(finding.remedy("add for instance `ftrace_config { ftrace_events: \"sched/sched_switch\" }`"));
    }
    let Some(ftrace) = config.ftrace_config.as_deref() else { return findings };
    let period_ms = ftrace.drain_period_ms.unwrap_or(100);
    if !(1..=60_000).contains(&period_ms) {
        let why = format!("a drain_period_ms of {period_ms} has no effect: it must be between 1 and 60000");
        findings.push(Finding::warning(format!("{path}.ftrace_config.drain_period_ms"), why));
    }
    let kb = u64::from(ftrace.buffer_size_kb.unwrap_or(0));
    if kb > LARGE_KERNEL_BUFFER_KB {
        let why = format!("a buffer of {} for each CPU is more than most kernels give", Size(kb.saturating_mul(1024)));
        let finding = Finding::warning(format!("{path}.ftrace_config.buffer_size_kb"), why);
        findings.push(finding.remedy("name KiB, not bytes: 65536 is 64 MiB"));
    }
    findings.extend(unknown_events(ftrace, path));
    findings.extend(unknown_categories(ftrace, path));
    findings
}

/// Tells of events whose names or groups are probably mistyped, as far as the probes know them. A
/// kernel may have more.
fn unknown_events(config: &FtraceConfig, path: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (i, event) in config.ftrace_events.iter().enumerate().take(LOOKED_AT_EVENTS) {
        if findings.len() == LISTED_EVENTS {
            break;
        }
        let event = String::from_utf8_lossy(event.as_bytes());
        let (group, name) = event.rsplit_once('/').map_or((None, &event[..]), |(group, name)| (Some(group), name));
        let close = closest_ftrace_event(&event);
        let is_known = close.as_ref().is_some_and(|close| {
            // A config may leave out the group.
            *close == event || group.is_none() && close.rsplit('/').next() == Some(name)
        });
        if name == "*" || is_known {
            continue;
        }
        let field = format!("{path}.ftrace_config.ftrace_events[{i}]");
        let finding = Finding::warning(field, format!("no event of this name is known: {event:?}"));
        match (close, group) {
            (Some(close), _) => findings.push(finding.remedy(format!("did you mean {close:?}?"))),
            (None, None) => {
                findings.push(finding.remedy("write it with its group, as in \"sched/sched_switch\""));
            }
            // Modules of the kernel have groups of their own.
            (None, Some(_)) => {}
        }
    }
    findings
}

/// Tells of categories of atrace that there are nowhere.
fn unknown_categories(config: &FtraceConfig, path: &str) -> Vec<Finding> {
    let names = config.atrace_categories.iter().map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned());
    let unknown = names.enumerate().take(LOOKED_AT_EVENTS).filter(|(_, name)| !is_atrace_category(name));
    unknown
        .take(LISTED_EVENTS)
        .map(|(i, name)| {
            let field = format!("{path}.ftrace_config.atrace_categories[{i}]");
            let finding = Finding::warning(field, format!("there is no category of atrace {name:?}"));
            finding.remedy(match closest(&name, atrace_categories()) {
                Some(close) => format!("did you mean {close:?}?"),
                None => format!("known are {}", atrace_categories().collect::<Vec<_>>().join(", ")),
            })
        })
        .collect()
}

fn process_stats(config: &DataSourceConfig, has_ftrace: bool, path: &str) -> Vec<Finding> {
    let default = ProcessStatsConfig::default();
    let stats = config.process_stats_config.as_ref().unwrap_or(&default);
    let mut findings = Vec::new();
    let period_ms = stats.proc_stats_poll_ms.unwrap_or(0);
    if stats.scan_all_processes_on_start != Some(true) && period_ms == 0 && !has_ftrace {
        let why = "linux.process_stats without a scan, a poll and linux.ftrace records nothing";
        let finding = Finding::warning(format!("{path}.name"), why);
        findings.push(finding.remedy("add for instance `process_stats_config { scan_all_processes_on_start: true }`"));
    }
    if (1..100).contains(&period_ms) {
        let why = format!("a proc_stats_poll_ms of {period_ms} is too short: 100 is used");
        findings.push(Finding::warning(format!("{path}.process_stats_config.proc_stats_poll_ms"), why));
    }
    findings
}

fn sys_stats(config: &DataSourceConfig, path: &str) -> Vec<Finding> {
    let default = SysStatsConfig::default();
    let stats = config.sys_stats_config.as_deref().unwrap_or(&default);
    let periods = [
        ("meminfo_period_ms", stats.meminfo_period_ms),
        ("vmstat_period_ms", stats.vmstat_period_ms),
        ("stat_period_ms", stats.stat_period_ms),
        ("devfreq_period_ms", stats.devfreq_period_ms),
        ("cpufreq_period_ms", stats.cpufreq_period_ms),
        ("buddyinfo_period_ms", stats.buddyinfo_period_ms),
        ("diskstat_period_ms", stats.diskstat_period_ms),
        ("psi_period_ms", stats.psi_period_ms),
        ("thermal_period_ms", stats.thermal_period_ms),
        ("cpuidle_period_ms", stats.cpuidle_period_ms),
        ("gpufreq_period_ms", stats.gpufreq_period_ms),
        ("slab_period_ms", stats.slab_period_ms),
    ];
    let used: Vec<(&str, u32)> =
        periods.iter().filter_map(|(name, ms)| Some((*name, ms.filter(|&ms| ms > 0)?))).collect();
    let mut findings = Vec::new();
    let Some(&(_, tick_ms)) = used.iter().min_by_key(|(_, ms)| *ms) else {
        let why = "linux.sys_stats without a period records nothing";
        let finding = Finding::warning(format!("{path}.name"), why);
        findings.push(finding.remedy("add for instance `sys_stats_config { stat_period_ms: 1000 }`"));
        return findings;
    };
    let counters = [
        ("meminfo_counters", stats.meminfo_counters.is_empty(), stats.meminfo_period_ms),
        ("vmstat_counters", stats.vmstat_counters.is_empty(), stats.vmstat_period_ms),
        ("stat_counters", stats.stat_counters.is_empty(), stats.stat_period_ms),
    ];
    for (field, _, _) in counters.iter().filter(|(_, is_empty, period)| !is_empty && period.unwrap_or(0) == 0) {
        let period = field.replace("_counters", "_period_ms");
        let finding = Finding::warning(
            format!("{path}.sys_stats_config.{field}"),
            format!("{field} has no effect without {period}"),
        );
        findings.push(finding.remedy(format!("add for instance `{period}: 1000`")));
    }
    for (field, ms) in used {
        let field_path = format!("{path}.sys_stats_config.{field}");
        if ms < 10 {
            findings.push(Finding::warning(field_path, format!("a {field} of {ms} is too short: 10 is used")));
        } else if ms % tick_ms != 0 {
            let why = format!(
                "{field} is no multiple of {tick_ms}, the shortest period: Perfetto's traced_probes then records no counters"
            );
            findings.push(Finding::warning(field_path, why));
        }
    }
    findings
}

/// Tells of a walk through the folders that begins after the end of the recording.
fn inode_file_map(config: &DataSourceConfig, duration_ms: u32, path: &str) -> Option<Finding> {
    let files = config.inode_file_config.as_ref();
    if files.is_some_and(|files| files.do_not_scan == Some(true)) || duration_ms == 0 {
        return None;
    }
    let delay_ms = files.and_then(|files| files.scan_delay_ms).filter(|&ms| ms > 0).unwrap_or(DEFAULT_SCAN_DELAY_MS);
    if delay_ms < duration_ms {
        return None;
    }
    let why = format!("files are looked for {delay_ms} ms after the start, the recording ends after {duration_ms} ms");
    let finding = Finding::warning(format!("{path}.inode_file_config.scan_delay_ms"), why);
    Some(finding.remedy("add for instance `inode_file_config { scan_delay_ms: 200 }`"))
}

/// Tells of words of the command line in the place of patterns.
fn words_of_the_command_line(config: &DataSourceConfig, path: &str) -> Vec<Finding> {
    let Some(events) = config.track_event_config.as_deref() else { return Vec::new() };
    let names = events.enabled_categories.iter().enumerate().take(LOOKED_AT_EVENTS);
    let told = names.filter_map(|(i, name)| {
        let name = String::from_utf8_lossy(name.as_bytes());
        let (field, rest) = match (name.strip_prefix('-'), name.strip_prefix("tag:")) {
            (Some(rest), _) => ("disabled_categories", rest),
            (None, rest) => ("enabled_tags", rest?),
        };
        let why = format!("no category has the name {name:?}: it is a word of `--category`");
        let finding = Finding::warning(format!("{path}.track_event_config.enabled_categories[{i}]"), why);
        Some(finding.remedy(format!("write `{field}: {rest:?}`")))
    });
    told.collect()
}

fn track_event(config: &DataSourceConfig, path: &str) -> Option<Finding> {
    let default = TrackEventConfig::default();
    let events = config.track_event_config.as_deref().unwrap_or(&default);
    if !events.enabled_categories.is_empty() || !events.enabled_tags.is_empty() {
        return None;
    }
    let is_off = events.disabled_categories.iter().any(|pattern| pattern.as_bytes() == b"*");
    let why = match is_off {
        true => "all categories are disabled and none is enabled: it records nothing",
        false => "no category is enabled by name: programs on the C library record nothing",
    };
    let finding = Finding::warning(format!("{path}.track_event_config"), why);
    Some(finding.remedy("add `enabled_categories: \"*\"`, or the names of the categories, to track_event_config"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::told;

    /// Returns the findings about a data source with this config.
    fn of(config: &str) -> Vec<String> {
        let ring = "buffers { size_kb: 64 } incremental_state_config { clear_period_ms: 5000 }";
        told(&format!("{ring} data_sources {{ config {{ {config} }} }}"))
    }

    /// Asserts that there is one finding, with this text.
    fn assert_told(config: &str, part: &str) {
        let found = of(config);
        assert!(found.len() == 1 && found[0].contains(part), "{config}: {found:#?}");
    }

    #[test]
    fn an_unknown_name_is_told() {
        assert_told("name: 'linux.ftrac' ftrace_config { ftrace_events: 'sched/sched_switch' }", "no known program");
        assert_told("name: 'com.example.mine'", "no known program has the data source \"com.example.mine\"");
        assert_told("target_buffer: 0", "without a name records nothing");
        assert_eq!(of("name: 'linux.system_info'"), [""; 0]);
        assert_eq!(of("name: 'linux.systemd_journald' journald_config { min_prio: 3 }"), [""; 0]);
    }

    #[test]
    fn a_data_source_of_perfettos_programs_is_told() {
        assert_told(
            "name: 'linux.perf'",
            "\"linux.perf\" is not implemented in Esatto; Perfetto's traced_perf offers it",
        );
        assert_told("name: 'android.heapprofd' heapprofd_config {}", "Perfetto's heapprofd offers it");
    }

    #[test]
    fn a_config_of_another_data_source_is_told() {
        let found = of("name: 'linux.system_info' ftrace_config { ftrace_events: 'sched/sched_switch' }");
        assert_eq!(found, ["data_sources[0].config.ftrace_config: \"linux.system_info\" does not read ftrace_config"]);
    }

    #[test]
    fn data_sources_without_a_wish_record_nothing() {
        assert_told("name: 'linux.ftrace'", "linux.ftrace without an event");
        assert_told("name: 'linux.ftrace' ftrace_config { drain_period_ms: 100 }", "linux.ftrace without an event");
        assert_told("name: 'linux.process_stats'", "without a scan, a poll and linux.ftrace");
        assert_told(
            "name: 'linux.sys_stats' sys_stats_config { meminfo_counters: MEMINFO_MEM_FREE }",
            "without a period",
        );
        assert_told("name: 'track_event'", "programs on the C library record nothing");
        assert_told("name: 'track_event' track_event_config { disabled_categories: '*' }", "it records nothing");
        let enabled = |name: &str| format!("name: 'track_event' track_event_config {{ enabled_categories: '{name}' }}");
        assert_told(&enabled("-db.*"), "no category has the name \"-db.*\": it is a word of `--category`");
        assert_told(&enabled("tag:slow"), "no category has the name \"tag:slow\"");
        assert_eq!(of(&enabled("a-b.*")), [""; 0]);
        let syscalls = "name: 'linux.ftrace' ftrace_config { syscall_events: 'sys_getppid' }";
        assert_eq!(of(syscalls), [""; 0], "they need no further event");
    }

    #[test]
    fn values_without_effect_are_told() {
        let events = "ftrace_events: 'sched/sched_switch'";
        assert_told(
            &format!("name: 'linux.ftrace' ftrace_config {{ {events} drain_period_ms: 0 }}"),
            "between 1 and 60000",
        );
        assert_told(
            &format!("name: 'linux.ftrace' ftrace_config {{ {events} buffer_size_kb: 33554432 }}"),
            "32.0 GiB for each CPU is more than most kernels give",
        );
        assert_told("name: 'linux.process_stats' process_stats_config { proc_stats_poll_ms: 7 }", "100 is used");
        let stats = |fields: &str| format!("name: 'linux.sys_stats' sys_stats_config {{ {fields} }}");
        assert_told(&stats("stat_period_ms: 5"), "10 is used");
        assert_told(&stats("stat_period_ms: 400 psi_period_ms: 1000"), "psi_period_ms is no multiple of 400");
        let counters = "stat_period_ms: 400 vmstat_counters: VMSTAT_PGFAULT";
        assert_told(&stats(counters), "vmstat_counters has no effect without vmstat_period_ms");
    }

    #[test]
    fn files_that_are_looked_for_too_late_are_told() {
        let of = |duration: &str, files: &str| {
            of(&format!(
                "name: 'linux.inode_file_map' {files} }} }} {duration} data_sources {{ config {{ \
                 name: 'linux.system_info'"
            ))
        };
        let found = of("duration_ms: 5000", "");
        assert!(found.len() == 1 && found[0].contains("10000 ms after the start"), "{found:#?}");
        let found = of("duration_ms: 5000", "inode_file_config { scan_delay_ms: 5000 }");
        assert!(found.len() == 1 && found[0].contains("ends after 5000 ms"), "{found:#?}");
        assert_eq!(of("duration_ms: 5000", "inode_file_config { scan_delay_ms: 200 }"), [""; 0]);
        assert_eq!(of("duration_ms: 5000", "inode_file_config { do_not_scan: true }"), [""; 0]);
        assert_eq!(of("", ""), [""; 0]);
    }

    #[test]
    fn a_mistyped_event_is_told() {
        let events = |events: &str| format!("name: 'linux.ftrace' ftrace_config {{ ftrace_events: '{events}' }}");
        assert_told(&events("sched/sched_swich"), "no event of this name is known: \"sched/sched_swich\"");
        assert_told(&events("shed/sched_switch"), "no event of this name is known: \"shed/sched_switch\"");
        assert_told(&events("my_own_driver_event"), "no event of this name is known");
        for known in ["sched/sched_switch", "sched_switch", "sched/*", "my_driver/of_my_own"] {
            assert_eq!(of(&events(known)), [""; 0], "{known}");
        }
    }

    #[test]
    fn a_mistyped_category_is_told() {
        let names = |name: &str| format!("name: 'linux.ftrace' ftrace_config {{ atrace_categories: '{name}' }}");
        assert_told(&names("schedd"), "no category of atrace \"schedd\"");
        for known in ["sched", "freq", "am"] {
            assert_eq!(of(&names(known)), [""; 0], "{known}");
        }
    }

    #[test]
    fn the_same_data_source_twice_is_told() {
        let found = told(
            "buffers { size_kb: 64 } data_sources { config { name: 'linux.system_info' } } \
             data_sources { config { name: 'linux.system_info' } }",
        );
        assert_eq!(found, ["data_sources[1]: data_sources[0] is the same: its events are recorded twice"]);
    }
}
