//! The programs for which a recording waits at its end, and the line that names them.
//!
//! At the end the service asks all programs for their last events, and then to stop. It waits for
//! each answer until a timeout. Only the states of data sources tell who has stopped: before that,
//! the service names nobody (`docs/spec/wire-protocol.md` §14). It reports no data source that is
//! about to start. Those are the ones that connected programs offer, and that it does not report.

use core::time::Duration;
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::time::Instant;

use esatto_protozero::ProtoString;
use esatto_schema::TraceConfig;
use esatto_schema::observable_events::{DataSourceInstanceState, DataSourceInstanceStateChange};
use esatto_trace::escape::Line;

use crate::producer_filter::ProducerFilter;
use crate::service_state::{Program, Programs, sorted, text};

/// Wait after which the user wants to know the reason.
const NOTICEABLE: Duration = Duration::from_secs(1);
/// Time after which an end is not due to programs.
const OVERDUE: Duration = Duration::from_secs(2);
/// Programs that the line names.
const MAX_NAMES: usize = 10;
/// Pairs of a program's name and a data source's name that are kept.
const MAX_PAIRS: usize = 10_000;
/// Bytes of such a pair. Longer names are not in the line.
const MAX_PAIR_BYTES: usize = 1 << 10;

/// Times that the config, or the service, gives programs at the end of a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) flush: Duration,
    pub(crate) stop: Duration,
}

/// Programs that have not answered, as far as the service tells.
#[derive(Debug)]
pub(crate) struct AwaitedPrograms {
    patience: Patience,
    /// The data sources of the config.
    wanted: Vec<ProducerFilter>,
    /// By the names of program and data source.
    instances: BTreeMap<(String, String), Instances>,
    /// The service was asked to report the states.
    is_told: bool,
    /// The service has listed its programs.
    has_list: bool,
    /// The service began to ask for the last events.
    asked_to_flush: Option<Instant>,
    /// The service began to ask programs to stop.
    asked_to_stop: Option<Instant>,
    said: Said,
}

/// Data sources of one name, in programs of one name.
#[derive(Clone, Copy, Debug, Default)]
struct Instances {
    running: u32,
    /// The service has not reported them.
    starting: u32,
    /// Reports before the list of programs.
    reported: u32,
}

/// Knowledge of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Nothing,
    /// That the recording waits.
    Wait,
    /// And for whom.
    Names,
    /// That the programs are not the reason any more.
    Overdue,
}

impl AwaitedPrograms {
    pub(crate) fn new(patience: Patience, config: &TraceConfig) -> Self {
        Self {
            patience,
            wanted: config.data_sources.iter().map(|source| ProducerFilter::of(source, config)).collect(),
            instances: BTreeMap::new(),
            is_told: false,
            has_list: false,
            asked_to_flush: None,
            asked_to_stop: None,
            said: Said::Nothing,
        }
    }

    /// Notes that from now on the service reports the states of data sources, beginning with the
    /// current ones.
    pub(crate) fn are_told(&mut self) {
        self.is_told = true;
    }

    /// Returns whether the service was asked to report the states.
    pub(crate) fn is_told(&self) -> bool {
        self.is_told
    }

    /// Takes a state that the service reports.
    pub(crate) fn on_change(&mut self, change: &DataSourceInstanceStateChange) {
        let has_list = self.has_list;
        let name = |name: &Option<ProtoString>| text(name.as_ref().map(|name| name.as_bytes()));
        let Some(instances) = self.of(name(&change.producer_name), name(&change.data_source_name)) else { return };
        instances.reported += u32::from(!has_list);
        let is_started = change.state == Some(DataSourceInstanceState::DATA_SOURCE_INSTANCE_STATE_STARTED);
        if is_started {
            instances.running = instances.running.saturating_add(1);
        }
        if is_started || instances.running == 0 {
            instances.starting = instances.starting.saturating_sub(1);
        } else {
            instances.running -= 1;
        }
    }

    /// Takes the programs that the service lists.
    pub(crate) fn on_list(&mut self, programs: &Programs) {
        if !self.is_told || self.has_list {
            return;
        }
        self.has_list = true;
        let wanted = core::mem::take(&mut self.wanted);
        for program in programs.connected() {
            for entry in &wanted {
                if !entry.accepts(program) || program.source(&entry.source).is_none() {
                    continue;
                }
                let Some(instances) = self.of(program.name.clone(), entry.source.clone()) else { continue };
                // Each report was of one of them.
                match instances.reported.checked_sub(1) {
                    Some(rest) => instances.reported = rest,
                    None => instances.starting += 1,
                }
            }
        }
    }

    fn of(&mut self, program: String, source: String) -> Option<&mut Instances> {
        let has_room = self.instances.len() < MAX_PAIRS && program.len() + source.len() <= MAX_PAIR_BYTES;
        match self.instances.entry((program, source)) {
            Entry::Vacant(_) if !has_room => None,
            entry => Some(entry.or_default()),
        }
    }

    /// Notes that the service asks for the last events, if this is not known yet.
    pub(crate) fn on_flush(&mut self, now: Instant) {
        self.asked_to_flush.get_or_insert(now);
    }

    /// Notes that the service asks programs to stop.
    pub(crate) fn on_stop(&mut self, now: Instant) {
        self.on_flush(now);
        self.asked_to_stop.get_or_insert(now);
    }

    /// Returns the next line for the user, once it is due.
    pub(crate) fn line(&mut self, now: Instant, programs: &Programs) -> Option<String> {
        let flush = self.asked_to_flush?;
        if self.said == Said::Overdue || now < flush + NOTICEABLE {
            return None;
        }
        let flush_end = flush + self.patience.flush;
        let stop = self.asked_to_stop.or_else(|| (now >= flush_end).then_some(flush_end));
        let end = stop.unwrap_or(flush_end) + self.patience.stop;
        if now >= end + OVERDUE {
            self.said = Said::Overdue;
            let reason = "Perhaps the disk to which it writes does not answer";
            return Some(format!("The service no longer waits for programs, but has not ended the session. {reason}."));
        }
        if self.said == Said::Names {
            return None;
        }
        let rest = format!("at most {} s more", end.saturating_duration_since(now).as_secs_f64().ceil().max(1.0));
        let awaited = self.instances.iter().filter(|(_, of)| of.running > 0 || of.starting > 0);
        let names: BTreeSet<&str> = awaited.map(|((name, _), _)| name.as_str()).collect();
        // If there is a single program, it is this one. If there are several, those that have
        // answered to the stop are no longer among them after a moment.
        let is_all = self.has_list || programs.programs.len() == 1;
        let is_single = names.len() == 1 && is_all;
        if !names.is_empty() && (is_single || stop.is_some_and(|stop| now >= stop + NOTICEABLE)) {
            self.said = Said::Names;
            let names = described(&names, programs);
            return Some(format!("Waiting for programs that do not answer: {}; {rest}.", Line(names)));
        }
        if self.said == Said::Wait || programs.programs.is_empty() {
            return None;
        }
        self.said = Said::Wait;
        Some(format!("Waiting for programs or the disk; {rest} for programs. The service cannot name them yet."))
    }
}

/// Returns the names, with the process ids of those that only one program has, and with the
/// machines of those that only run on other ones.
fn described(names: &BTreeSet<&str>, programs: &Programs) -> String {
    let mut described: Vec<String> = Vec::new();
    for name in names.iter().take(MAX_NAMES) {
        let of_name: Vec<&Program> = programs.programs.iter().filter(|program| program.name == *name).collect();
        let pid = match of_name[..] {
            [program] if program.pid != 0 => Some(format!("pid {}", program.pid)),
            _ => None,
        };
        let machines = sorted(of_name.iter().map(|program| program.machine.as_str()));
        let machines = match machines[..] {
            // A program of this name is beside the service.
            [] | ["", ..] => None,
            [machine] => Some(format!("of machine {machine}")),
            _ => Some(format!("of machines {}", machines.join(", "))),
        };
        let details: Vec<String> = pid.into_iter().chain(machines).collect();
        described.push(if details.is_empty() { (*name).to_owned() } else { format!("{name} ({})", details.join(" ")) });
    }
    let more = names.len().saturating_sub(MAX_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    described.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service_state::Source;
    use crate::trace_config::track_events;

    const PATIENCE: Patience = Patience { flush: Duration::from_secs(5), stop: Duration::from_secs(5) };

    fn change(name: &str, is_started: bool) -> DataSourceInstanceStateChange {
        let state = if is_started {
            DataSourceInstanceState::DATA_SOURCE_INSTANCE_STATE_STARTED
        } else {
            DataSourceInstanceState::DATA_SOURCE_INSTANCE_STATE_STOPPED
        };
        DataSourceInstanceStateChange {
            producer_name: Some(name.into()),
            data_source_name: Some("track_event".into()),
            state: Some(state),
            ..DataSourceInstanceStateChange::default()
        }
    }

    fn programs(names: &[&str]) -> Programs {
        let program = |(pid, name): (i32, &&str)| {
            let source = Source::named("track_event", Vec::new());
            let mut program = Program::named(name, vec![source]);
            program.pid = pid;
            program
        };
        Programs::of((7..).zip(names).map(program).collect())
    }

    fn awaited() -> AwaitedPrograms {
        AwaitedPrograms::new(PATIENCE, &track_events(false))
    }

    #[test]
    fn several_programs_are_named_when_the_others_have_stopped() {
        let (begun, second) = (Instant::now(), Duration::from_secs(1));
        let programs = programs(&["a", "b", "b", "c"]);
        let mut awaited = awaited();
        awaited.are_told();
        for (name, is_started) in [("a", true), ("b", true), ("b", true), ("c", true)] {
            awaited.on_change(&change(name, is_started));
        }
        awaited.on_list(&programs);
        assert_eq!(awaited.line(begun + 60 * second, &programs), None, "nothing has been asked");
        awaited.on_flush(begun);
        assert_eq!(awaited.line(begun + second / 2, &programs), None, "a moment is normal");
        let line = awaited.line(begun + second, &programs).unwrap();
        assert!(line.contains("at most 9 s more") && line.contains("cannot name"), "{line}");
        assert_eq!(awaited.line(begun + 2 * second, &programs), None, "it is said once");
        awaited.on_stop(begun + 4 * second);
        awaited.on_change(&change("b", false));
        awaited.on_change(&change("c", false));
        let line = awaited.line(begun + 5 * second, &programs).unwrap();
        assert_eq!(line, "Waiting for programs that do not answer: a (pid 7), b; at most 4 s more.");
        assert_eq!(awaited.line(begun + 6 * second, &programs), None);
        let line = awaited.line(begun + 12 * second, &programs).unwrap();
        assert!(line.contains("no longer waits for programs") && line.contains("disk"), "{line}");
        assert_eq!(awaited.line(begun + 60 * second, &programs), None);
    }

    #[test]
    fn a_program_that_has_not_started_is_named() {
        let (begun, second) = (Instant::now(), Duration::from_secs(1));
        let programs = programs(&["a", "a", "b"]);
        for is_listed_first in [false, true] {
            let mut awaited = awaited();
            awaited.are_told();
            if is_listed_first {
                awaited.on_list(&programs);
            }
            awaited.on_change(&change("a", true));
            awaited.on_change(&change("b", true));
            awaited.on_list(&programs);
            awaited.on_stop(begun);
            awaited.on_change(&change("a", false));
            awaited.on_change(&change("b", false));
            let line = awaited.line(begun + second, &programs).unwrap();
            assert_eq!(line, "Waiting for programs that do not answer: a; at most 4 s more.");
        }
    }

    #[test]
    fn a_session_that_the_service_ends_has_a_time_for_each_step() {
        let (begun, second) = (Instant::now(), Duration::from_secs(1));
        let mut awaited = awaited();
        awaited.on_flush(begun);
        assert_eq!(awaited.line(begun + second, &programs(&[])), None, "there is no program");
        let programs = programs(&["a", "b"]);
        assert!(awaited.line(begun + second, &programs).is_some(), "an old service reports no states");
        awaited.are_told();
        awaited.on_list(&programs);
        assert_eq!(awaited.line(begun + 5 * second, &programs), None);
        let line = awaited.line(begun + 6 * second, &programs).unwrap();
        assert!(line.contains("a (pid 7), b (pid 8); at most 4 s more"), "{line}");
    }

    #[test]
    fn a_program_of_another_machine_is_named_with_it() {
        let mut all = programs(&["a", "b", "b", "c", "c", "d"]).programs;
        for (index, machine) in [(0, "guest1"), (1, "guest1"), (2, "guest2"), (3, "guest1")] {
            all[index].machine = machine.to_owned();
        }
        let named = described(&["a", "b", "c", "d"].into(), &Programs::of(all));
        assert_eq!(named, "a (pid 7 of machine guest1), b (of machines guest1, guest2), c, d (pid 12)");
    }
}
