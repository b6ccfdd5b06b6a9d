//! The reason why a recording has no events.

mod categories;

use core::fmt;

use esatto_daemon_program::closest;
use esatto_schema::trace_config::DataSource;
use esatto_schema::{DataSourceConfig, TraceConfig};

use self::categories::{categories, enables, event_config};
use crate::producer_filter::{HOST, ProducerFilter, names_host};
use crate::service_state::{Program, Programs, sorted};
use crate::unimplemented_sources::not_implemented;

const TRACK_EVENT: &str = "track_event";
const FTRACE: &str = "linux.ftrace";
/// Name of the commands that bring a trigger (`docs/spec/cli.md`).
const TRIGGER_COMMAND: &str = "perfetto_cmd_producer";
/// Names of data sources that many programs offer, or Perfetto's own. A name that is like one of
/// them is probably mistyped.
pub(crate) const WELL_KNOWN: [&str; 17] = [
    TRACK_EVENT,
    "android.heapprofd",
    "android.java_hprof",
    "android.log",
    "android.packages_list",
    "android.power",
    "android.surfaceflinger.frametimeline",
    "gpu.counters",
    FTRACE,
    "linux.inode_file_map",
    "linux.perf",
    "linux.process_stats",
    "linux.sys_stats",
    "linux.sysfs_power",
    "linux.system_info",
    "org.chromium.trace_event",
    "org.chromium.trace_metadata",
];
/// Advice for programs that end before the service reaches them.
const WAIT_ADVICE: &str = "a program that ends within milliseconds can wait for the recording: set \
                           ESATTO_WAIT_MS=5000 for it, or call `Tracing::wait_until_enabled`";
/// As [`WAIT_ADVICE`], for the programs of a command: this one lets them wait.
pub(crate) const COMMAND_ADVICE: &str = "programs on Esatto's SDK wait for the recording by themselves; one on \
                                         Perfetto's SDK has to live for some milliseconds after it has connected";
/// Beginnings of the names of data sources of machines.
const PROBES: [&str; 2] = ["linux.", "perf."];
/// Names that a warning lists.
const MAX_NAMES: usize = 20;
/// Characters of each of them.
const MAX_NAME_CHARS: usize = 100;

/// A recording without events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EmptyRecording<'a> {
    pub(crate) config: &'a TraceConfig,
    /// The config is the default one, and not of the user.
    pub(crate) is_default: bool,
    /// Programs that were connected at any time.
    pub(crate) programs: &'a Programs,
    /// The recorded command.
    pub(crate) command: Option<&'a str>,
    /// Bytes that programs wrote into the buffers of the session.
    pub(crate) buffer_bytes: u64,
    /// Events of the kernel that the config wants in vain, if the recording has ended.
    pub(crate) missing_events: Option<&'a str>,
}

impl EmptyRecording<'_> {
    /// Returns the reason, and advice if there is any.
    pub(crate) fn reason(&self) -> String {
        // Commands that bring a trigger connect for that only.
        let is_trigger = |program: &&Program| program.name == TRIGGER_COMMAND && program.sources.is_empty();
        let programs: Vec<Program> =
            self.programs.programs.iter().filter(|program| !is_trigger(program)).cloned().collect();
        let programs = &programs[..];
        if !self.programs.is_known {
            return "the service does not tell which programs are connected".to_owned();
        }
        if programs.is_empty() {
            return match self.command {
                Some(command) => format!(
                    "no program connected while the command ran; {command} must use Esatto's or Perfetto's SDK, and \
                     connect to the system's service: `Tracing::builder().system()`, in C \
                     `esatto_init(ESATTO_SYSTEM)`. A program that goes on in the background needs a service that also \
                     goes on: `esatto traced`"
                ),
                None => {
                    let unseen = match self.programs.tells_departed {
                        true => "",
                        false => "; this service does not tell of programs that end soon after they connect",
                    };
                    let told: Vec<String> = self.missing_sources().into_iter().map(or_well_known).collect();
                    return format!(
                        "no program is connected to the service, so none offers {}{unseen}; `esatto list` shows the \
                         programs, and `esatto record -- COMMAND` starts one with a service of its own",
                        Names(told.iter().map(String::as_str).collect())
                    );
                }
            } + &self.mistyped().map(|told| format!("; {told}")).unwrap_or_default();
        }
        if self.programs.source_names().is_empty() {
            let names = names_of(programs);
            let told = self.mistyped().map(|told| format!("{told}; ")).unwrap_or_default();
            return format!("{told}{names} connected, but offered no data source; {}", self.wait_advice());
        }
        let reasons = self.unmatched_sources();
        if !reasons.is_empty() {
            return reasons.join("; ");
        }
        let wanted = wanted_programs(self.config, self.programs);
        if self.config.trace_filter.is_some() && self.buffer_bytes > 0 {
            let names = names_of(wanted.iter().map(|(program, _)| *program));
            return format!("the trace_filter of the config left no event of the connected programs: {names}");
        }
        if let Some(mode) = self.programs.lockdown.filter(|_| wanted.is_empty()) {
            return format!(
                "lockdown mode leaves out the programs that the config wants; uid {} has none. Left out are: {}",
                mode.uid,
                names_of(programs)
            );
        }
        let (ended, connected): (Vec<&Program>, Vec<&Program>) = wanted
            .into_iter()
            .filter_map(|(program, is_enabled)| is_enabled.then_some(program))
            .partition(|program| program.has_ended);
        if ended.is_empty() {
            if let Some(told) = self.missing_events {
                return told.to_owned();
            }
            let names = names_of(connected);
            return format!("the config fits, but the connected programs had no event to record: {names}");
        }
        let others = match connected.is_empty() {
            true => String::new(),
            false => format!("; those that are connected had no event: {}", names_of(connected)),
        };
        let is_silent =
            |program: &&Program| program.source(TRACK_EVENT).is_some_and(|source| source.categories.is_empty());
        if ended.iter().all(is_silent) {
            return format!(
                "the programs have ended, and have offered no category of events: {}{others}; a program in C or C++ \
                 registers its categories before it uses them (`ESATTO_REGISTER`, `esatto::register_categories`); {}",
                names_of(ended),
                self.wait_advice()
            );
        }
        format!(
            "the programs have ended, and the recording reached them too late or they had no event: \
             {}{others}; {}",
            names_of(ended),
            self.wait_advice()
        )
    }

    fn wait_advice(&self) -> &'static str {
        if self.command.is_some() { COMMAND_ADVICE } else { WAIT_ADVICE }
    }

    /// Returns a line about programs of other machines that the default config leaves out.
    pub(crate) fn machines_left_out(&self) -> Option<String> {
        let of_others = self.programs.programs.iter().filter(|program| !program.machine.is_empty());
        let offering = of_others.filter(|program| program.source(TRACK_EVENT).is_some());
        let machines = sorted(offering.map(machine_of));
        let is_told = self.is_default && !machines.is_empty();
        is_told.then(|| {
            format!(
                "Programs of other machines were connected and are left out: {}. To record them, use a config with \
                 `trace_all_machines: true`.",
                Names(machines)
            )
        })
    }

    /// Returns which data sources of the config no program offers, and are like a well-known one.
    fn mistyped(&self) -> Option<String> {
        let is_offered = |name: &str| self.programs.programs.iter().any(|program| program.source(name).is_some());
        let names = self.config.data_sources.iter().map(name_of).filter(|name| !is_offered(name));
        let told = names.filter_map(|name| {
            let close = closest(&name, WELL_KNOWN).filter(|close| *close != name)?;
            Some(format!("no program offers the data source {name:?}; did you mean {close:?}?"))
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// Returns a line for each data source of the config that no program offers, although the
    /// recording has events.
    pub(crate) fn unseen_sources(&self, has_track_events: bool) -> Vec<String> {
        let knows_all = self.programs.tells_departed;
        let told = self.missing_sources().into_iter().filter_map(|name| {
            let known = self.programs.source_names().into_iter().chain(WELL_KNOWN);
            let close = closest(&name, known).filter(|close| *close != name);
            // Programs may have ended unseen. Those of the system stay.
            let is_certain = knows_all || close.is_some() || is_of_machine(&name);
            let has_events = name == TRACK_EVENT && has_track_events;
            let hint = match (not_implemented(&name), close) {
                (Some(why), _) => format!("; it is {why}."),
                (None, Some(close)) => format!("; did you mean {close:?}?"),
                (None, None) => ".".to_owned(),
            };
            (is_certain && !has_events)
                .then(|| format!("No program was seen that offers the data source {name:?}{hint}"))
        });
        told.collect()
    }

    /// Returns why data sources of the config match nothing that the connected programs offer.
    fn unmatched_sources(&self) -> Vec<String> {
        let sources = self.config.data_sources.iter().filter(|source| self.is_expected(source));
        let mut reasons: Vec<String> = sources.filter_map(|source| self.reason_of(source)).collect();
        reasons.dedup();
        reasons
    }

    /// Returns which names of machines in the config no known program has, beside names that some
    /// program has.
    pub(crate) fn unknown_machines(&self) -> Option<String> {
        if !self.programs.is_known || self.programs.omitted > 0 {
            return None;
        }
        let filters = self.config.data_sources.iter().map(|source| ProducerFilter::of(source, self.config));
        let mut unknown: Vec<String> = filters.filter_map(|filter| self.unknown_machines_of(&filter)).collect();
        unknown.dedup();
        (!unknown.is_empty()).then(|| unknown.join("; "))
    }

    /// Returns what the user can mend while the recording runs: programs are connected, but do not
    /// offer what the config names. Others may still connect.
    pub(crate) fn early_warning(&self) -> Option<String> {
        let is_complete = self.programs.is_known && self.programs.omitted == 0;
        if !is_complete || self.programs.source_names().is_empty() {
            return self.mistyped().map(|told| format!("So far, {told}"));
        }
        let mut reasons = self.unmatched_sources();
        if reasons.is_empty() {
            reasons.extend(self.unknown_machines());
        }
        (!reasons.is_empty()).then(|| format!("So far, {}.", reasons.join("; ").trim_end_matches('.')))
    }

    /// Returns the names of the config's data sources that no known program offers.
    pub(crate) fn missing_sources(&self) -> Vec<String> {
        if !self.programs.is_known || self.programs.omitted > 0 {
            return Vec::new();
        }
        let known = self.programs.source_names();
        let sources = self.config.data_sources.iter().filter(|source| self.is_expected(source));
        sources.map(name_of).filter(|name| known.binary_search(&name.as_str()).is_err()).collect()
    }

    /// Returns whether the user misses the data source if no program offers it. Presets also record
    /// programs, which need not run.
    fn is_expected(&self, source: &DataSource) -> bool {
        !self.is_default || self.config.data_sources.len() == 1 || name_of(source) != TRACK_EVENT
    }

    fn reason_of(&self, source: &DataSource) -> Option<String> {
        let name = name_of(source);
        let offering: Vec<&Program> =
            self.programs.programs.iter().filter(|program| program.source(&name).is_some()).collect();
        if offering.is_empty() {
            let known = self.programs.source_names();
            let likely = known.iter().copied().chain(WELL_KNOWN);
            let offers_probes = known.iter().any(|known| is_of_machine(known));
            let hint = if let Some(why) = not_implemented(&name) {
                format!("; it is {why}.")
            } else if let Some(close) = closest(&name, likely).filter(|close| *close != name) {
                format!("; did you mean {close:?}?")
            } else if is_of_machine(&name) && !offers_probes {
                "; a program such as `esatto probes` offers such data sources, and is not connected.".to_owned()
            } else {
                ".".to_owned()
            };
            return Some(format!("no program offers the data source {name:?}{hint} Known are: {}", Names(known)));
        }
        let filter = ProducerFilter::of(source, self.config);
        let here: Vec<&Program> =
            offering.iter().copied().filter(|program| filter.accepts_machine(&program.machine)).collect();
        if here.is_empty() {
            return Some(self.reason_of_machines(&filter, &offering));
        }
        let wanted: Vec<&Program> = here.iter().copied().filter(|program| filter.accepts_name(&program.name)).collect();
        if wanted.is_empty() {
            let field = match (filter.names.is_empty(), filter.patterns.is_empty()) {
                (false, true) => "producer_name_filter",
                (true, _) => "producer_name_regex_filter",
                (false, false) => "producer_name_filter and producer_name_regex_filter",
            };
            let verb = if field.contains(" and ") { "match" } else { "matches" };
            let names = sorted(here.iter().map(|program| program.name.as_str()));
            let hint = filter.names.iter().find_map(|name| closest_program(name, &names));
            let hint = hint.map_or_else(|| ".".to_owned(), |close| format!("; did you mean {close:?}?"));
            return Some(format!(
                "{field} of the data source {name:?} {verb} no connected program{hint} Known are: {}",
                Names(names)
            ));
        }
        if name == FTRACE && !source.config.as_ref().is_some_and(|config| wants_kernel_events(config)) {
            return Some(format!(
                "the config of the data source {name:?} asks for no event; name some, for example \
                 `ftrace_config {{ ftrace_events: \"sched/sched_switch\" }}`"
            ));
        }
        if name != TRACK_EVENT {
            return None;
        }
        self.reason_of_categories(&event_config(source), &categories(wanted.into_iter()).collect::<Vec<_>>())
    }

    /// Returns why a data source wants no program of the machines on which programs offer it.
    fn reason_of_machines(&self, filter: &ProducerFilter, offering: &[&Program]) -> String {
        let machines = sorted(offering.iter().map(|program| machine_of(program)));
        if filter.machines.is_empty() {
            let first = machines.first().copied().unwrap_or_default();
            let place = if self.is_default { "in a config" } else { "in the config" };
            return format!(
                "the connected programs are on other machines ({}); set `trace_all_machines: true` or \
                 `machine_name_filter: {first:?}` {place}",
                Names(machines)
            );
        }
        self.unknown_machines_of(filter).unwrap_or_else(|| {
            format!(
                "machine_name_filter wants the data source {:?} of {}, but only programs of other machines offer it: {}",
                filter.source,
                Names(filter.machines.iter().map(String::as_str).collect()),
                Names(machines)
            )
        })
    }

    fn unknown_machines_of(&self, filter: &ProducerFilter) -> Option<String> {
        let mut known = sorted(self.programs.programs.iter().map(machine_of).chain([HOST]));
        let is_known = |name: &&String| names_host(name) || known.binary_search(&name.as_str()).is_ok();
        let unknown: Vec<&String> = filter.machines.iter().filter(|name| !is_known(name)).collect();
        let described: Vec<String> = unknown.iter().map(|name| or_close(name, &known)).collect();
        // The service's own machine comes first.
        known.sort_unstable_by_key(|name| *name != HOST);
        (!unknown.is_empty()).then(|| {
            format!(
                "machine_name_filter names no connected machine: {}. Known are: {}",
                described.join(", "),
                Names(known)
            )
        })
    }
}

/// Returns the programs that the service records with a config. For each tells whether the config
/// enables something in it, as far as the program has announced.
pub(crate) fn wanted_programs<'a>(config: &TraceConfig, programs: &'a Programs) -> Vec<(&'a Program, bool)> {
    let entry = |source| (ProducerFilter::of(source, config), source);
    let entries: Vec<(ProducerFilter, &DataSource)> = config.data_sources.iter().map(entry).collect();
    let user = programs.lockdown.map(|mode| mode.uid);
    let programs = programs.programs.iter().filter(|program| user.is_none_or(|uid| uid == program.uid));
    let wanted = programs.filter_map(|program| {
        let is_wanted =
            |(filter, _): &&(ProducerFilter, _)| program.source(&filter.source).is_some() && filter.accepts(program);
        let mut sources = entries.iter().filter(is_wanted).map(|(_, source)| *source).peekable();
        sources.peek()?;
        Some((program, sources.any(|source| enables_some(source, program))))
    });
    wanted.collect()
}

/// Returns whether an entry of a config enables something that the program offers.
fn enables_some(source: &DataSource, program: &Program) -> bool {
    let name = name_of(source);
    let categories = program.source(&name).map_or(&[][..], |offered| &offered.categories);
    // Programs also have categories that they make while they run, and do not announce.
    name != TRACK_EVENT || categories.is_empty() || {
        let config = event_config(source);
        categories.iter().any(|category| enables(&config, category))
    }
}

/// Returns whether a config of the data source `linux.ftrace` asks for any event.
pub(crate) fn wants_kernel_events(config: &DataSourceConfig) -> bool {
    config.ftrace_config.as_ref().is_some_and(|ftrace| {
        let names = [&ftrace.ftrace_events, &ftrace.atrace_categories, &ftrace.atrace_apps, &ftrace.syscall_events];
        names.iter().any(|names| !names.is_empty())
            || !ftrace.kprobe_events.is_empty()
            || ftrace.enable_function_graph.unwrap_or(false)
    })
}

fn name_of(source: &DataSource) -> String {
    let name = source.config.as_ref().and_then(|config| config.name.as_ref());
    name.map_or_else(String::new, |name| String::from_utf8_lossy(name.as_bytes()).into_owned())
}

/// Returns the name of a program's machine in a `machine_name_filter`.
fn machine_of(program: &Program) -> &str {
    if program.machine.is_empty() { HOST } else { &program.machine }
}

/// Returns the name of a program that is most like a mistyped one. Most programs have the path of
/// their file as their name.
fn closest_program<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let file_name = |name: &'a str| name.rsplit('/').next().unwrap_or(name);
    closest(typed, known.iter().copied()).or_else(|| {
        let close = closest(typed, known.iter().copied().map(file_name))?;
        known.iter().copied().find(|name| file_name(name) == close)
    })
}

/// Returns whether a data source has a name like those of machines.
fn is_of_machine(name: &str) -> bool {
    PROBES.iter().any(|probe| name.starts_with(probe))
}

/// Returns the name of a data source, with the well-known one that was probably meant.
fn or_well_known(name: String) -> String {
    match (not_implemented(&name), closest(&name, WELL_KNOWN).filter(|close| *close != name)) {
        (Some(why), _) => format!("{name} ({why})"),
        (None, Some(close)) => format!("{name} (did you mean {close}?)"),
        (None, None) => name,
    }
}

/// Returns a mistyped name, with the known one that was probably meant.
fn or_close(typed: &str, known: &[&str]) -> String {
    match closest(typed.trim_end_matches('*'), known.iter().copied()) {
        Some(close) => format!("{typed:?} (did you mean {close:?}?)"),
        None => format!("{typed:?}"),
    }
}

fn names_of<'a>(programs: impl IntoIterator<Item = &'a Program>) -> Names<'a> {
    Names(sorted(programs.into_iter().map(|program| program.name.as_str())))
}

/// Some names in quotes.
#[derive(Debug)]
pub(crate) struct Names<'a>(pub(crate) Vec<&'a str>);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (i, name) in self.0.iter().take(MAX_NAMES).enumerate() {
            write!(f, "{}{name:.MAX_NAME_CHARS$}", if i == 0 { "" } else { ", " })?;
        }
        match self.0.len().checked_sub(MAX_NAMES) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, " and {more} more (see `esatto list`)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service_state::{Category, Source};
    use crate::trace_config::track_events;

    fn programs(categories: &[(&str, &[&str])]) -> Programs {
        let category = |(name, tags): &(&str, &[&str])| Category {
            name: (*name).to_owned(),
            tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
            ..Category::default()
        };
        let source = Source::named(TRACK_EVENT, categories.iter().map(category).collect());
        let program = Program::named("app", vec![source]);
        Programs::of(vec![program])
    }

    fn reason(config: &TraceConfig, is_default: bool, programs: &Programs) -> String {
        EmptyRecording { config, is_default, programs, command: None, buffer_bytes: 0, missing_events: None }.reason()
    }

    #[test]
    fn categories_that_are_off_by_default_need_an_option() {
        let only_debug = programs(&[("details", &["debug"])]);
        let said = reason(&track_events(false), true, &only_debug);
        assert!(said.contains("--all-categories") && said.contains("details (debug)"), "{said}");
        let said = reason(&track_events(true), true, &only_debug);
        assert!(said.contains("had no event to record: app"), "{said}");
    }

    #[test]
    fn a_config_without_categories_records_nothing_from_the_c_library() {
        let mut config = track_events(false);
        config.data_sources[0].config.as_mut().unwrap().track_event_config = None;
        let said = reason(&config, false, &programs(&[("net", &[])]));
        assert!(said.contains("C library") && said.contains("enabled_categories: \"*\""), "{said}");
    }

    #[test]
    fn a_program_that_ended_too_early_is_named() {
        let programs = Programs::of(vec![Program::named("app", Vec::new())]);
        let said = reason(&track_events(false), true, &programs);
        assert!(said.contains("app connected, but offered no data source"), "{said}");
        let trigger = Programs::of(vec![Program::named(TRIGGER_COMMAND, Vec::new())]);
        let said = reason(&track_events(false), true, &trigger);
        assert!(said.contains("no program is connected") && !said.contains(TRIGGER_COMMAND), "{said}");
    }

    #[test]
    fn programs_that_the_config_leaves_out_are_no_reason() {
        let mut config = track_events(false);
        let events = config.data_sources[0].config.as_mut().unwrap().track_event_config.as_mut().unwrap();
        (events.enabled_categories, events.disabled_categories) = (vec!["work".into()], vec!["*".into()]);
        let all = |of: &[(&str, &str, bool)]| {
            let program = |(name, category, has_ended): &(&str, &str, bool)| {
                let category = Category { name: (*category).to_owned(), ..Category::default() };
                let mut program = Program::named(name, vec![Source::named(TRACK_EVENT, vec![category])]);
                program.has_ended = *has_ended;
                program
            };
            Programs::of(of.iter().map(program).collect())
        };
        let said = reason(&config, false, &all(&[("idle", "app", false), ("crunch", "work", true)]));
        let ended = "the programs have ended, and the recording reached them too late or they had no event: crunch; ";
        assert!(said.starts_with(ended) && said.ends_with(WAIT_ADVICE), "{said}");
        let several = [("idle", "work", false), ("crunch", "work", true), ("other", "app", true)];
        let said = reason(&config, false, &all(&several));
        assert!(said.contains("event: crunch; those that are connected had no event: idle; a program"), "{said}");
        let said = reason(&config, false, &all(&[("idle", "work", false), ("other", "app", true)]));
        assert_eq!(said, "the config fits, but the connected programs had no event to record: idle");
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..25).map(|i| i.to_string()).collect();
        let shown = Names(names.iter().map(String::as_str).collect()).to_string();
        assert!(shown.ends_with("18, 19 and 5 more (see `esatto list`)"), "{shown}");
        assert_eq!(Names(vec![&"x".repeat(100_000)]).to_string().len(), MAX_NAME_CHARS);
    }
}
