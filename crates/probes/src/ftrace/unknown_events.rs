//! Events of a config that the kernel does not have, and those that were probably meant.

use esatto_daemon_program::closest;

use super::schema::SchemaEvent;
use super::tracefs::{Tracefs, shown};
use crate::data_source::TracingSession;

/// Unknown events that a line of the log names.
const MAX_LOGGED_EVENTS: usize = 20;

/// Returns the event that is most like a mistyped one, as `GROUP/NAME`, if one is like it. It is an
/// event for which Perfetto's schema has a message; this machine's kernel may lack it.
///
/// ```
/// assert_eq!(esatto_probes::closest_ftrace_event("sched/sched_swich").as_deref(), Some("sched/sched_switch"));
/// assert_eq!(esatto_probes::closest_ftrace_event("sched_swich").as_deref(), Some("sched/sched_switch"));
/// ```
#[must_use]
pub fn closest_ftrace_event(typed: &str) -> Option<String> {
    closest_of(typed, &SchemaEvent::all().map(|event| format!("{}/{}", event.group, event.name)).collect::<Vec<_>>())
}

/// Logs the events that do not exist. `top` is the tracefs itself, because its instances have no
/// list of events.
pub(crate) fn log(session: TracingSession, unknown: &[String], top: &Tracefs) {
    if unknown.is_empty() {
        return;
    }
    let known = top.read("available_events").unwrap_or_default();
    let known: Vec<String> = String::from_utf8_lossy(&known).lines().map(|line| line.replacen(':', "/", 1)).collect();
    let told = unknown.iter().take(MAX_LOGGED_EVENTS).map(|event| match closest_of(event, &known) {
        Some(close) => format!("{} (did you mean {close}?)", shown(event)),
        None => shown(event),
    });
    let told: Vec<String> = told.collect();
    let more = match unknown.len() - told.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    log::warn!("session {}: the kernel has no ftrace event {}{more}", session.0, told.join(", "));
}

/// Returns the event that is most like a mistyped one. A config may leave out the group.
fn closest_of(typed: &str, known: &[String]) -> Option<String> {
    if typed.contains('/') {
        return closest(typed, known.iter().map(String::as_str)).map(str::to_owned);
    }
    let name_of = |event: &'_ String| event.split_once('/').map_or(0, |(group, _)| group.len() + 1);
    let close = closest(typed, known.iter().map(|event| &event[name_of(event)..]))?;
    known.iter().find(|event| &event[name_of(event)..] == close).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_event_is_recognized_with_and_without_its_group() {
        let close = |typed| closest_ftrace_event(typed).unwrap_or_default();
        assert_eq!(close("sched/sched_swich"), "sched/sched_switch");
        assert_eq!(close("shed/sched_switch"), "sched/sched_switch");
        assert_eq!(close("sched_wakin"), "sched/sched_waking");
        assert_eq!(close("no_such_event_at_all"), "");
    }
}
