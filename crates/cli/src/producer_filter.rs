//! Filters of a data source: the machines and programs that the config wants
//! (`docs/spec/service.md` §6).

use core::cell::Cell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use esatto_filter::{PatternQuota, Regex, RegexEngine as _, Span};
use esatto_protozero::ProtoString;
use esatto_schema::TraceConfig;
use esatto_schema::trace_config::DataSource;

use crate::service_state::Program;

/// Name of the service's machine in a `machine_name_filter`.
pub(crate) const HOST: &str = "host";
/// Variable with another name of the service's machine.
const MACHINE_NAME: &str = "PERFETTO_MACHINE_NAME";
/// Steps of about a nanosecond that the regular expressions of a data source may take in total,
/// bytes of names included. The names of programs can be long and hard to match.
const MAX_STEPS: u64 = 1 << 26;

/// Filters of one data source.
#[derive(Debug)]
pub(crate) struct ProducerFilter {
    /// Name of the data source.
    pub(crate) source: String,
    pub(crate) machines: Vec<String>,
    all_machines: bool,
    pub(crate) names: Vec<String>,
    /// The regular expressions as the config has them.
    pub(crate) patterns: Vec<String>,
    /// The compiled ones; `None` if one is of a dialect that only the service knows.
    compiled: Option<Vec<Arc<dyn Regex>>>,
    steps: Cell<u64>,
}

impl ProducerFilter {
    pub(crate) fn of(source: &DataSource, config: &TraceConfig) -> Self {
        let texts = |texts: &[ProtoString]| texts.iter().map(text).collect::<Vec<_>>();
        let quota = PatternQuota::default();
        let compile = |pattern: &ProtoString| quota.compile(pattern.as_bytes(), Span::Whole).ok();
        Self {
            source: source.config.as_ref().and_then(|config| config.name.as_ref()).map_or_else(String::new, text),
            machines: texts(&source.machine_name_filter),
            all_machines: config.trace_all_machines == Some(true),
            names: texts(&source.producer_name_filter),
            patterns: texts(&source.producer_name_regex_filter),
            compiled: source.producer_name_regex_filter.iter().map(compile).collect(),
            steps: Cell::new(MAX_STEPS),
        }
    }

    /// Returns whether the data source wants this program.
    pub(crate) fn accepts(&self, program: &Program) -> bool {
        self.accepts_machine(&program.machine) && self.accepts_name(&program.name)
    }

    /// Returns whether the data source wants programs of this machine; that of the service is
    /// empty.
    pub(crate) fn accepts_machine(&self, machine: &str) -> bool {
        let is_host = machine.is_empty();
        if self.machines.is_empty() {
            return is_host || self.all_machines;
        }
        match is_host {
            true => self.machines.iter().any(|name| names_host(name)),
            false => self.machines.iter().any(|name| name == machine),
        }
    }

    /// Returns whether the data source wants programs of this name.
    pub(crate) fn accepts_name(&self, name: &str) -> bool {
        let is_unfiltered = self.names.is_empty() && self.patterns.is_empty();
        is_unfiltered || self.names.iter().any(|wanted| wanted == name) || self.matches(name)
    }

    /// Tests the regular expressions. A name that takes too long counts as wanted.
    fn matches(&self, name: &str) -> bool {
        let Some(patterns) = &self.compiled else { return true };
        patterns.iter().any(|pattern| {
            let mut steps = self.steps.get();
            let is_match = pattern.is_match_within(name.as_bytes(), &mut steps);
            self.steps.set(steps.saturating_sub(name.len() as u64));
            self.steps.get() == 0 || is_match.unwrap_or(true)
        })
    }
}

/// Returns whether a name in a `machine_name_filter` means the service's machine.
pub(crate) fn names_host(name: &str) -> bool {
    let set = std::env::var_os(MACHINE_NAME).filter(|name| !name.is_empty());
    let uname = rustix::system::uname();
    let own = set.as_deref().unwrap_or_else(|| OsStr::from_bytes(uname.sysname().to_bytes()));
    name == HOST || own == name
}

/// Returns whether a config records programs of other machines.
pub(crate) fn wants_other_machines(config: &TraceConfig) -> bool {
    let names = config.data_sources.iter().flat_map(|source| &source.machine_name_filter);
    config.trace_all_machines == Some(true) || names.into_iter().any(|name| !names_host(&text(name)))
}

fn text(text: &ProtoString) -> String {
    String::from_utf8_lossy(text.as_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(source: DataSource, trace_all_machines: bool) -> ProducerFilter {
        let config = TraceConfig { trace_all_machines: Some(trace_all_machines), ..TraceConfig::default() };
        ProducerFilter::of(&source, &config)
    }

    #[test]
    fn machines_are_chosen_as_the_service_does() {
        let filter = |names: &[&str], all| {
            let machine_name_filter = names.iter().map(|&name| name.into()).collect();
            filter(DataSource { machine_name_filter, ..DataSource::default() }, all)
        };
        for (names, all, host, guest) in [
            (&[][..], false, true, false),
            (&[], true, true, true),
            (&["host"], true, true, false),
            (&["guest1", "x"], false, false, true),
            (&["gest1"], true, false, false),
        ] {
            let filter = filter(names, all);
            assert_eq!((filter.accepts_machine(""), filter.accepts_machine("guest1")), (host, guest), "{names:?}");
        }
    }

    #[test]
    fn regular_expressions_match_whole_names_and_end() {
        let filter = |pattern: &str| {
            let producer_name_regex_filter = vec![pattern.into()];
            filter(DataSource { producer_name_regex_filter, ..DataSource::default() }, false)
        };
        assert!(filter("app.*").accepts_name("app1") && !filter("ap").accepts_name("app1"));
        assert!(filter("(").accepts_name("app1"), "only the service knows");
        let (hard, long) = (filter(r"(a*)*b\1"), "a".repeat(4000));
        // Without a bound this would take minutes.
        for _ in 0..20_000 {
            hard.accepts_name(&long);
        }
    }
}
