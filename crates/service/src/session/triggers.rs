//! Triggers of a config, and the sessions that wait for them (`docs/spec/service.md §11`).

use esatto_map::{LargeMap, LargeSet, Set};
use esatto_schema::TraceConfig;
use esatto_schema::trace_config::trigger_config::TriggerMode;

use crate::client_text::Name;
use crate::ids::SessionId;
use crate::name_pattern::{NamePattern, Quota};
use crate::session::Session;
use crate::session::state::State;

/// Returns the effective mode of a config, if it is not UNSPECIFIED.
pub(crate) fn mode_of(config: &TraceConfig) -> Option<TriggerMode> {
    let triggers = config.trigger_config.as_ref()?;
    if triggers.use_clone_snapshot_if_available == Some(true) {
        return Some(TriggerMode::CLONE_SNAPSHOT);
    }
    triggers.trigger_mode.filter(|&mode| mode != TriggerMode::UNSPECIFIED)
}

/// Checks mode and time-out of `trigger_config`. `max_ms` is the longest time-out.
///
/// # Errors
///
/// A text for the consumer.
pub(crate) fn check_mode(config: &TraceConfig, max_ms: u32) -> Result<(), String> {
    let Some(triggers) = &config.trigger_config else { return Ok(()) };
    let timeout_ms = triggers.trigger_timeout_ms.unwrap_or(0);
    if mode_of(config).is_some() && (timeout_ms == 0 || timeout_ms > max_ms) {
        return Err(format!("trigger_timeout_ms is {timeout_ms}, it must be between 1 and {max_ms}"));
    }
    let mode = triggers.trigger_mode.unwrap_or_default();
    // Mode 3 is reserved.
    if ![0, 1, 2, 4].contains(&mode.0) {
        return Err(format!("trigger_config.trigger_mode is {}, which no version knows", mode.0));
    }
    if triggers.use_clone_snapshot_if_available == Some(true) && mode != TriggerMode::STOP_TRACING {
        return Err("trigger_config.use_clone_snapshot_if_available needs trigger_mode STOP_TRACING".to_owned());
    }
    if mode_of(config).is_some() && config.duration_ms.unwrap_or(0) != 0 {
        return Err("duration_ms is not possible with triggers, trigger_timeout_ms takes its place".to_owned());
    }
    Ok(())
}

/// Checks the other fields of `trigger_config`.
///
/// # Errors
///
/// A text for the consumer.
pub(crate) fn check(config: &TraceConfig) -> Result<(), String> {
    let Some(triggers) = &config.trigger_config else { return Ok(()) };
    let stops_or_clones = matches!(mode_of(config), Some(TriggerMode::STOP_TRACING | TriggerMode::CLONE_SNAPSHOT));
    if stops_or_clones && config.write_into_file == Some(true) {
        return Err("write_into_file is not possible with trigger_mode STOP_TRACING or CLONE_SNAPSHOT".to_owned());
    }
    let mut names = LargeSet::new();
    for trigger in &triggers.triggers {
        let name = trigger.name.as_deref().unwrap_or_default();
        if !names.insert(name) {
            return Err(format!("two triggers have the name {}", String::from_utf8_lossy(name)));
        }
    }
    Ok(())
}

/// Compiles `producer_name_regex` of each trigger.
///
/// # Errors
///
/// A text for the consumer.
pub(crate) fn compile_patterns(config: &TraceConfig, quota: &Quota) -> Result<Vec<Option<NamePattern>>, String> {
    let triggers = config.trigger_config.as_ref().map_or(&[][..], |config| &config.triggers);
    let compile = |trigger: &esatto_schema::trace_config::trigger_config::Trigger| {
        let pattern = trigger.producer_name_regex.as_deref().filter(|pattern| !pattern.is_empty());
        let compiled = pattern.map(|pattern| NamePattern::new(pattern, quota)).transpose();
        compiled.map_err(|error| format!("producer_name_regex of a trigger: {error}"))
    };
    triggers.iter().map(compile).collect()
}

/// The triggers of a session.
#[derive(Debug, Default)]
pub(crate) struct Triggers {
    /// The compiled `producer_name_regex` of each trigger.
    pub(crate) patterns: Vec<Option<NamePattern>>,
    /// A trigger was accepted.
    pub(crate) is_hit: bool,
    /// Accepted triggers that no read has told yet.
    pub(crate) received: Vec<Received>,
    /// Accepted clone triggers whose delay is not over, by the number of their timer.
    pub(crate) delayed: LargeMap<u64, Received>,
    pub(crate) last_delayed: u64,
    /// Triggers that did not act because of `max_per_24_h`.
    pub(crate) limited: u64,
    /// Indexes of those that the log has named.
    pub(crate) told_limited: Set<usize>,
}

impl Triggers {
    /// Creates triggers that have not been activated.
    pub(crate) fn new(patterns: Vec<Option<NamePattern>>) -> Self {
        Self { patterns, ..Self::default() }
    }

    /// Creates the triggers of a clone. The clone tells the triggers that its source has received,
    /// and the source does not.
    pub(crate) fn of_clone(source: &mut Self) -> Self {
        Self { is_hit: true, received: core::mem::take(&mut source.received), ..Self::default() }
    }
}

/// A trigger that was accepted.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) boottime_ns: u64,
    pub(crate) name: Name,
    pub(crate) producer_name: Name,
    pub(crate) producer_uid: i32,
    pub(crate) stop_delay_ms: u64,
}

/// Sessions by the names of the triggers that they wait for.
#[derive(Debug, Default)]
pub(crate) struct Listeners(LargeMap<Name, LargeMap<SessionId, usize>>);

impl Listeners {
    pub(crate) fn add(&mut self, session: &Session) {
        for (index, name) in names_of(session).enumerate() {
            match self.0.get_mut(name) {
                Some(of_name) => drop(of_name.insert(session.id, index)),
                None => drop(self.0.insert(name.into(), LargeMap::from_iter([(session.id, index)]))),
            }
        }
    }

    pub(crate) fn remove(&mut self, session: &Session) {
        for name in names_of(session) {
            let Some(of_name) = self.0.get_mut(name) else { continue };
            of_name.remove(&session.id);
            if of_name.is_empty() {
                self.0.remove(name);
            }
        }
    }

    /// Returns the shared name, and the sessions with the index of their trigger.
    pub(crate) fn of(&self, name: &[u8]) -> Option<(Name, Vec<(SessionId, usize)>)> {
        let (name, sessions) = self.0.get_key_value(name)?;
        Some((Name::clone(name), sessions.iter().map(|(&session, &index)| (session, index)).collect()))
    }
}

/// Iterates over the names of a session's triggers. A clone has none.
fn names_of(session: &Session) -> impl Iterator<Item = &[u8]> {
    let triggers = session.config.trigger_config.as_ref().filter(|_| session.clone_facts().is_none());
    let triggers = triggers.map_or(&[][..], |config| &config.triggers);
    triggers.iter().map(|trigger| trigger.name.as_deref().unwrap_or_default())
}

impl Session {
    /// Tells whether the session cannot be read: not until a trigger is accepted, and never if its
    /// triggers make clones.
    pub(crate) fn is_hidden(&self) -> bool {
        self.state() != State::Cloned && (self.is_for_clones() || self.lacks_trigger())
    }

    fn is_for_clones(&self) -> bool {
        mode_of(&self.config) == Some(TriggerMode::CLONE_SNAPSHOT)
    }

    /// Tells whether no trigger has come that allows to read the session itself.
    pub(crate) fn lacks_trigger(&self) -> bool {
        let has_triggers = || self.config.trigger_config.as_ref().is_some_and(|config| !config.triggers.is_empty());
        !self.is_for_clones() && has_triggers() && !self.triggers.is_hit
    }
}
