//! Programs that ended before a recording reached them, beside others that it recorded.

use std::collections::BTreeMap;

use esatto_schema::TraceConfig;

use crate::empty_recording::{COMMAND_ADVICE, wanted_programs};
use crate::service_state::{Missed, Program, Programs};

/// Programs that a line names.
const MAX_NAMES: usize = 10;

/// Returns a line for each reason why the recording has nothing of programs that have ended.
///
/// `is_command` says that the programs are those of a command, which wait if they can.
pub(crate) fn missed_programs(config: &TraceConfig, programs: &Programs, is_command: bool) -> Vec<String> {
    let wanted = wanted_programs(config, programs);
    let is_enabled = |program: &Program| {
        // The service knows whether the config wants a program that had not yet offered anything.
        program.sources.is_empty()
            || wanted.iter().any(|(other, is_enabled)| *is_enabled && core::ptr::eq(*other, program))
    };
    let of = |missed| -> Vec<&Program> {
        programs.programs.iter().filter(|program| program.missed == Some(missed) && is_enabled(program)).collect()
    };
    let (unreached, without_data) = (of(Missed::Unreached), of(Missed::WithoutData));
    let mut lines = Vec::new();
    if let Some(names) = described(&unreached) {
        let (ended, them) = counted(&unreached);
        let remedy = match is_command {
            true => format!("Under `esatto record -- COMMAND`, {COMMAND_ADVICE}."),
            false => {
                format!("To record {them}, set ESATTO_WAIT_MS=5000 for {them}, or call `Tracing::wait_until_enabled`.")
            }
        };
        lines.push(format!("{ended} ended before the recording reached {them}: {names}. {remedy}"));
    }
    if let Some(names) = described(&without_data) {
        let (ended, them) = counted(&without_data);
        let they = if them == "it" { "it" } else { "they" };
        lines.push(format!(
            "{ended} ended without an event in the recording: it reached {them} too late, or {they} had none: {names}."
        ));
    }
    lines
}

/// Returns the number of the programs in words, and the pronoun for them.
fn counted(programs: &[&Program]) -> (String, &'static str) {
    match programs.len() {
        1 => ("1 program".to_owned(), "it"),
        count => (format!("{count} programs"), "them"),
    }
}

/// Returns each name with its process ids, or `None` if there is no program.
fn described(programs: &[&Program]) -> Option<String> {
    let mut pids: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for program in programs.iter().take(MAX_NAMES) {
        let of_name = pids.entry(&program.name).or_default();
        of_name.extend(Some(program.pid).filter(|pid| *pid != 0).map(|pid| pid.to_string()));
    }
    let names = pids.into_iter().map(|(name, pids)| match pids.len() {
        0 => name.to_owned(),
        1 => format!("{name} (pid {})", pids[0]),
        _ => format!("{name} (pids {})", pids.join(", ")),
    });
    let names: Vec<String> = names.collect();
    let more = programs.len().saturating_sub(MAX_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| names.join(", ") + &more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service_state::{Category, Source};
    use crate::trace_config::track_events;

    fn program(name: &str, pid: i32, category: Option<&str>, missed: Option<Missed>) -> Program {
        let category = category.map(|name| Category { name: name.to_owned(), ..Category::default() });
        let sources = category.map(|category| Source::named("track_event", vec![category]));
        let mut program = Program::named(name, sources.into_iter().collect());
        (program.pid, program.missed, program.has_ended) = (pid, missed, true);
        program
    }

    #[test]
    fn only_those_that_the_config_enables_are_named() {
        let mut config = track_events(false);
        let events = config.data_sources[0].config.as_mut().unwrap().track_event_config.as_mut().unwrap();
        (events.enabled_categories, events.disabled_categories) = (vec!["work".into()], vec!["*".into()]);
        let unreached = Some(Missed::Unreached);
        let programs = Programs::of(vec![
            program("a", 1, Some("work"), unreached),
            program("b", 2, None, unreached),
            program("c", 3, Some("app"), unreached),
            program("d", 4, Some("work"), None),
            program("e", 5, Some("work"), Some(Missed::WithoutData)),
            program("f", 6, Some("app"), Some(Missed::WithoutData)),
        ]);
        let lines = missed_programs(&config, &programs, false);
        let start = "2 programs ended before the recording reached them: a (pid 1), b (pid 2). To record them, set";
        assert!(lines[0].starts_with(start), "{lines:?}");
        let last =
            "1 program ended without an event in the recording: it reached it too late, or it had none: e (pid 5).";
        assert_eq!(lines[1..], [last]);
    }

    #[test]
    fn long_lists_are_cut() {
        let all: Vec<Program> = (1..=12).map(|pid| program("a", pid, None, Some(Missed::Unreached))).collect();
        let line = missed_programs(&track_events(false), &Programs::of(all), false).remove(0);
        assert!(
            line.starts_with("12 programs")
                && line.contains(": a (pids 1, 2, ")
                && line.contains(", 10) and 2 more. To"),
            "{line}"
        );
    }
}
