//! [`FtraceRequest`]: what a config wants of ftrace, checked (`docs/spec/probes.md` §2).

use core::time::Duration;

use esatto_schema::FtraceConfig;
use esatto_schema::ftrace_config::kprobe_event::KprobeType;
use esatto_schema::ftrace_config::tracefs_option::State;
use esatto_schema::ftrace_config::{KprobeEvent, KsymsMemPolicy, PrintFilter as ConfigFilter};

use super::print_filter::{PrintFilter, PrintPattern, PrintRule};
use super::source_encoder::GenericEncoding;
use super::syscalls::{SyscallSet, syscall_number};
use super::tracefs::shown;

/// Entries of each list of a config.
const MAX_CONFIG_ENTRIES: usize = 100_000;
/// Bytes of a name. The kernel's names of events and functions have at most 512.
const MAX_NAME_BYTES: usize = 512;
/// Largest ring buffer of a CPU, 64 GiB: the kernel refuses less than that.
const MAX_BUFFER_KB: u32 = 64 << 20;

const DEFAULT_PERIOD: Duration = Duration::from_millis(100);
const MAX_PERIOD_MS: u32 = 60_000;

/// Wishes of a config for ftrace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FtraceRequest {
    pub(crate) events: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) wants_print: bool,
    pub(crate) instance_name: String,
    pub(crate) buffer_size_kb: Option<u32>,
    pub(crate) is_size_lower_bound: bool,
    /// `None`: not in the config.
    pub(crate) period: Option<Duration>,
    /// 0: read by time only.
    pub(crate) drain_percent: u32,
    pub(crate) compact_sched: bool,
    pub(crate) symbolize: bool,
    pub(crate) retains_symbols: bool,
    pub(crate) throttles_rss_stat: bool,
    pub(crate) disables_generic_events: bool,
    pub(crate) preserves_buffer: bool,
    pub(crate) wants_monotonic_raw: bool,
    pub(crate) syscalls: SyscallSet,
    /// Numbers of the system calls.
    pub(crate) syscall_numbers: Vec<u16>,
    /// Names that are no system calls of this machine.
    pub(crate) unknown_syscalls: Vec<String>,
    pub(crate) function_graph: Option<FunctionGraph>,
    pub(crate) print_filter: PrintFilter,
    pub(crate) kprobes: Vec<KprobeRequest>,
    pub(crate) generic_encoding: GenericEncoding,
    pub(crate) exclusive: ExclusiveFeatures,
}

/// Functions that the function graph shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FunctionGraph {
    pub(crate) filters: Vec<String>,
    pub(crate) roots: Vec<String>,
    pub(crate) max_depth: u32,
}

/// A function of the kernel whose calls are events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KprobeRequest {
    pub(crate) name: String,
    pub(crate) at_entry: bool,
    pub(crate) at_return: bool,
}

/// Settings of a whole tracefs instance, which only one data source may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExclusiveFeatures {
    pub(crate) tids: Vec<u32>,
    /// Name and state of options.
    pub(crate) options: Vec<(String, bool)>,
    pub(crate) cpumask: Option<String>,
}

impl ExclusiveFeatures {
    pub(crate) fn is_empty(&self) -> bool {
        self.tids.is_empty() && self.options.is_empty() && self.cpumask.is_none()
    }
}

impl FtraceRequest {
    /// Checks a config.
    ///
    /// # Errors
    ///
    /// The first value that cannot be, with its field.
    pub(crate) fn from_config(config: &FtraceConfig) -> Result<Self, String> {
        let instance_name = text(config.instance_name.as_ref());
        check_instance_name(&instance_name)?;
        let events = names("ftrace_events", &config.ftrace_events, is_event_name)?;
        let categories = names("atrace_categories", &config.atrace_categories, |_| true)?;
        let syscalls = names("syscall_events", &config.syscall_events, |_| true)?;
        let (known, unknown): (Vec<_>, Vec<_>) = syscalls.into_iter().partition(|name| syscall_number(name).is_some());
        let mut syscall_numbers: Vec<u16> = known.iter().filter_map(|name| syscall_number(name)).collect();
        syscall_numbers.sort_unstable();
        syscall_numbers.dedup();
        let wants_syscalls = !config.syscall_events.is_empty();
        let period = config.drain_period_ms.filter(|ms| *ms != 0).map(|ms| match ms {
            1..=MAX_PERIOD_MS => Duration::from_millis(u64::from(ms)),
            _ => DEFAULT_PERIOD,
        });
        Ok(Self {
            wants_print: !categories.is_empty() || !config.atrace_apps.is_empty(),
            events,
            categories: if config.atrace_userspace_only.unwrap_or(false) { Vec::new() } else { categories },
            instance_name,
            buffer_size_kb: config.buffer_size_kb.filter(|kb| *kb != 0).map(|kb| kb.min(MAX_BUFFER_KB)),
            is_size_lower_bound: config.buffer_size_lower_bound.unwrap_or(false),
            period,
            drain_percent: config.drain_buffer_percent.unwrap_or(0).min(100),
            compact_sched: config.compact_sched.as_ref().is_none_or(|compact| compact.enabled.unwrap_or(true)),
            symbolize: config.symbolize_ksyms.unwrap_or(false),
            retains_symbols: config.ksyms_mem_policy == Some(KsymsMemPolicy::KSYMS_RETAIN),
            throttles_rss_stat: config.throttle_rss_stat.unwrap_or(false),
            disables_generic_events: config.disable_generic_events.unwrap_or(false),
            preserves_buffer: config.preserve_ftrace_buffer.unwrap_or(false),
            wants_monotonic_raw: config.use_monotonic_raw_clock.unwrap_or(false),
            syscalls: match wants_syscalls {
                true => SyscallSet::of(syscall_numbers.iter().copied()),
                false => SyscallSet::All,
            },
            syscall_numbers,
            unknown_syscalls: unknown,
            function_graph: function_graph(config)?,
            print_filter: print_filter(config.print_filter.as_ref())?,
            kprobes: kprobes(&config.kprobe_events)?,
            generic_encoding: match config.denser_generic_event_encoding.unwrap_or(true) {
                true => GenericEncoding::SelfDescribing,
                false => GenericEncoding::Named,
            },
            exclusive: exclusive(config)?,
        })
    }

    /// True if the config names system calls.
    pub(crate) fn names_syscalls(&self) -> bool {
        self.syscalls != SyscallSet::All
    }
}

/// Checks the name of a tracefs instance: it is the name of a folder.
pub(crate) fn check_instance_name(name: &str) -> Result<(), String> {
    if name.contains('/') || name.contains('\0') || name.starts_with("..") || name == "." || name.len() > 255 {
        return Err(format!("instance_name `{}` is not the name of a folder", shown(name)));
    }
    Ok(())
}

fn function_graph(config: &FtraceConfig) -> Result<Option<FunctionGraph>, String> {
    // A colon begins a command, such as one that stops tracing.
    let is_function = |name: &str| !name.contains([':', '\n', ' ']);
    let filters = names("function_filters", &config.function_filters, is_function)?;
    let roots = names("function_graph_roots", &config.function_graph_roots, is_function)?;
    let max_depth = config.function_graph_max_depth.unwrap_or(0);
    Ok(config.enable_function_graph.unwrap_or(false).then_some(FunctionGraph { filters, roots, max_depth }))
}

fn print_filter(config: Option<&ConfigFilter>) -> Result<PrintFilter, String> {
    let rules = config.map_or(&[][..], |config| &config.rules);
    check_length("print_filter", rules.len())?;
    let rules = rules.iter().filter_map(|rule| {
        let bytes = |text: &esatto_protozero::ProtoString| AsRef::<[u8]>::as_ref(text).to_vec();
        let pattern = match (&rule.prefix, &rule.atrace_msg) {
            (Some(prefix), _) => PrintPattern::Prefix(bytes(prefix)),
            (None, Some(message)) => PrintPattern::Atrace {
                kind: message.r#type.as_ref().map(bytes).unwrap_or_default(),
                prefix: message.prefix.as_ref().map(bytes).unwrap_or_default(),
            },
            (None, None) => return None,
        };
        Some(PrintRule { pattern, allow: rule.allow.unwrap_or(false) })
    });
    Ok(PrintFilter { rules: rules.collect() })
}

fn kprobes(config: &[KprobeEvent]) -> Result<Vec<KprobeRequest>, String> {
    check_length("kprobe_events", config.len())?;
    let mut probes = Vec::new();
    for event in config {
        let name = text(event.probe.as_ref());
        if !is_word(&name, |_| false) {
            return Err(format!("kprobe_events: `{}` is not the name of a function", shown(&name)));
        }
        let (at_entry, at_return) = match event.r#type.unwrap_or_default() {
            KprobeType::KPROBE_TYPE_KPROBE => (true, false),
            KprobeType::KPROBE_TYPE_KRETPROBE => (false, true),
            KprobeType::KPROBE_TYPE_BOTH => (true, true),
            _ => {
                return Err(format!(
                    "kprobe_events: `{}` has no type; name one, such as KPROBE_TYPE_KPROBE",
                    shown(&name)
                ));
            }
        };
        probes.push(KprobeRequest { name, at_entry, at_return });
    }
    Ok(probes)
}

fn exclusive(config: &FtraceConfig) -> Result<ExclusiveFeatures, String> {
    check_length("tids_to_trace", config.tids_to_trace.len())?;
    check_length("tracefs_options", config.tracefs_options.len())?;
    let mut options = Vec::new();
    for option in &config.tracefs_options {
        let name = text(option.name.as_ref());
        if !is_word(&name, |byte| byte == b'-') {
            return Err(format!("tracefs_options: `{}` is not the name of an option", shown(&name)));
        }
        let is_on = match option.state.unwrap_or_default() {
            State::STATE_ENABLED => true,
            State::STATE_DISABLED => false,
            _ => {
                return Err(format!(
                    "tracefs_options: `{}` has no state; name one, such as STATE_ENABLED",
                    shown(&name)
                ));
            }
        };
        options.push((name, is_on));
    }
    let cpumask = config.tracing_cpumask.as_ref().map(|mask| text(Some(mask))).filter(|mask| !mask.is_empty());
    let is_mask = |mask: &&String| mask.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b',');
    if let Some(mask) = cpumask.as_ref().filter(|mask| !is_mask(mask)) {
        return Err(format!("tracing_cpumask `{}` is not a hexadecimal mask", shown(mask)));
    }
    Ok(ExclusiveFeatures { tids: config.tids_to_trace.clone(), options, cpumask })
}

fn names(
    field: &str,
    list: &[esatto_protozero::ProtoString],
    is_valid: impl Fn(&str) -> bool,
) -> Result<Vec<String>, String> {
    check_length(field, list.len())?;
    let mut names = Vec::with_capacity(list.len());
    for name in list {
        let name = text(Some(name));
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !is_valid(&name) {
            return Err(format!("{field}: `{}` is not a name", shown(&name)));
        }
        names.push(name);
    }
    Ok(names)
}

fn check_length(field: &str, len: usize) -> Result<(), String> {
    if len > MAX_CONFIG_ENTRIES {
        return Err(format!("{field} has {len} entries; at most {MAX_CONFIG_ENTRIES} are allowed"));
    }
    Ok(())
}

/// `GROUP/NAME` or `NAME`, both with wildcards.
fn is_event_name(event: &str) -> bool {
    let is_other = |byte| matches!(byte, b'-' | b'*');
    let mut parts = event.split('/');
    let is_valid = parts.by_ref().take(2).all(|part| is_word(part, is_other));
    is_valid && parts.next().is_none()
}

fn is_word(word: &str, is_other: impl Fn(u8) -> bool) -> bool {
    !word.is_empty()
        && word.len() <= MAX_NAME_BYTES
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || is_other(byte))
}

fn text(text: Option<&esatto_protozero::ProtoString>) -> String {
    text.map(|text| String::from_utf8_lossy(text.as_ref()).into_owned()).unwrap_or_default()
}
