//! Sessions that start or stop when a producer says so (`docs/spec/service.md §11`).
//!
//! A trigger for a snapshot (CLONE_SNAPSHOT) does nothing by itself: the consumer is told of it, and makes the clone.

use std::collections::VecDeque;

use esatto_map::{Map, Set};
use esatto_protozero::Owned;
use esatto_schema::TraceConfig;
use esatto_schema::trace_config::trigger_config::TriggerMode;

use crate::api::TimerClock;
use crate::context::Context;
use crate::ids::{ProducerId, SessionId};
use crate::name_pattern::NamePattern;
use crate::service::{Purpose, Service};
use crate::session::{AfterFlush, FlushReason, Session, State};

/// Triggers kept between reads; later ones still act, but are not told.
const MAX_RECEIVED: usize = 1024;

/// Clone triggers of a session whose delay is not over.
const MAX_DELAYED: usize = 256;

/// Activations of one trigger that count for `max_per_24_h`.
const MAX_ACTIVATIONS: usize = 65_536;

/// Triggers whose activations are counted.
const MAX_NAMES: usize = 4096;

const DAY_NS: u64 = 24 * 3600 * 1_000_000_000;

/// The effective mode of a config, if that is not UNSPECIFIED.
pub(crate) fn mode_of(config: &TraceConfig) -> Option<TriggerMode> {
    let triggers = config.trigger_config.as_ref()?;
    if triggers.use_clone_snapshot_if_available == Some(true) {
        return Some(TriggerMode::CLONE_SNAPSHOT);
    }
    triggers.trigger_mode.filter(|&mode| mode != TriggerMode::UNSPECIFIED)
}

/// Checks mode and timeout of `trigger_config`, `max_ms` being the longest timeout.
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
    // 3 is reserved.
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

/// Checks what `trigger_config` says besides.
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
    let mut names = Set::new();
    for trigger in &triggers.triggers {
        let name = trigger.name.clone().unwrap_or_default();
        if !names.insert(name.clone()) {
            return Err(format!("two triggers have the name {name}"));
        }
    }
    Ok(())
}

/// Compiles `producer_name_regex` of each trigger.
///
/// # Errors
///
/// A text for the consumer.
pub(crate) fn compile_patterns(config: &TraceConfig) -> Result<Vec<Option<NamePattern>>, String> {
    let triggers = config.trigger_config.as_ref().map_or(&[][..], |config| &config.triggers);
    let compile = |trigger: &esatto_schema::trace_config::trigger_config::Trigger| {
        let pattern = trigger.producer_name_regex.as_deref().filter(|pattern| !pattern.is_empty());
        let compiled = pattern.map(NamePattern::new).transpose();
        compiled.map_err(|error| format!("producer_name_regex of a trigger: {error}"))
    };
    triggers.iter().map(compile).collect()
}

/// The triggers of a session.
#[derive(Debug, Default)]
pub(crate) struct Triggers {
    /// The compiled `producer_name_regex` of each.
    pub(crate) patterns: Vec<Option<NamePattern>>,
    /// One was accepted.
    pub(crate) is_hit: bool,
    /// Accepted, and not read yet.
    pub(crate) received: Vec<Received>,
    /// Clone triggers that were accepted and whose delay is not over, by the number of their timer.
    delayed: Map<u64, Received>,
    last_delayed: u64,
}

impl Triggers {
    /// Of which none was hit yet.
    pub(crate) fn new(patterns: Vec<Option<NamePattern>>) -> Self {
        Self { patterns, ..Self::default() }
    }

    /// Those of a clone: what its source has received is told by the clone, and by nobody else.
    pub(crate) fn of_clone(source: &mut Self) -> Self {
        Self { is_hit: true, received: core::mem::take(&mut source.received), ..Self::default() }
    }
}

/// A trigger that was accepted.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) boottime_ns: u64,
    pub(crate) name: Vec<u8>,
    pub(crate) producer_name: Vec<u8>,
    pub(crate) producer_uid: i32,
    pub(crate) stop_delay_ms: u64,
}

/// When each trigger was activated in the last 24 hours. Only names that a config has come in.
#[derive(Debug, Default)]
pub(crate) struct History(Map<Vec<u8>, VecDeque<u64>>);

impl History {
    fn count(&mut self, name: &[u8], now_ns: u64) -> usize {
        let Some(times) = self.0.get_mut(name) else { return 0 };
        while times.front().is_some_and(|at_ns| now_ns.saturating_sub(*at_ns) >= DAY_NS) {
            times.pop_front();
        }
        times.len()
    }

    fn add(&mut self, name: &[u8], now_ns: u64) {
        if self.0.len() >= MAX_NAMES {
            self.0.retain(|_, times| times.back().is_some_and(|at_ns| now_ns.saturating_sub(*at_ns) < DAY_NS));
        }
        if self.0.len() < MAX_NAMES || self.0.contains_key(name) {
            let times = self.0.get_or_default(name.to_vec());
            if times.len() == MAX_ACTIVATIONS {
                times.pop_front();
            }
            times.push_back(now_ns);
        }
    }
}

impl Session {
    /// Nothing is to be seen of it: not until a trigger hits, and only in clones if triggers make clones.
    pub(crate) fn is_hidden(&self) -> bool {
        let has_triggers = || self.config.trigger_config.as_ref().is_some_and(|config| !config.triggers.is_empty());
        let is_for_clones = || mode_of(&self.config) == Some(TriggerMode::CLONE_SNAPSHOT);
        self.state != State::Cloned && (is_for_clones() || has_triggers() && !self.triggers.is_hit)
    }

    fn set_duration(&mut self, duration_ms: u32) {
        self.config.duration_ms = Some(duration_ms);
        self.config_bytes = self.config.encode();
    }
}

impl Service {
    /// Prepares a session whose data sources are set up for its triggers.
    pub(crate) fn arm_triggers(&mut self, id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let timeout_ms =
            session.config.trigger_config.as_ref().and_then(|config| config.trigger_timeout_ms).unwrap_or(0);
        match mode_of(&session.config) {
            Some(TriggerMode::START_TRACING) => {
                self.set_timer(id, Purpose::TriggerTimeout, TimerClock::Monotonic, timeout_ms, cx);
            }
            Some(_) => session.set_duration(timeout_ms),
            None => {}
        }
    }

    /// A producer sends triggers.
    pub(crate) fn activate_triggers<'a>(
        &mut self,
        producer: ProducerId,
        names: impl Iterator<Item = &'a [u8]>,
        cx: &mut Context<'_>,
    ) {
        let Some(sender) = self.producers.get(&producer) else { return };
        let (producer_name, producer_uid) = (sender.name.clone(), sender.peer.uid);
        for name in names {
            let before = self.trigger_history.count(name, cx.now.boottime_ns);
            let sessions: Vec<SessionId> = self.sessions.keys().copied().collect();
            let mut is_accepted = false;
            for id in sessions {
                let Some(delay_ms) = self.accept_trigger(id, name, &producer_name, before) else { continue };
                is_accepted = true;
                let received = Received {
                    boottime_ns: cx.now.boottime_ns,
                    name: name.to_vec(),
                    producer_name: producer_name.clone(),
                    producer_uid,
                    stop_delay_ms: delay_ms.into(),
                };
                self.hit(id, received, delay_ms, cx);
            }
            if is_accepted {
                self.trigger_history.add(name, cx.now.boottime_ns);
            }
        }
    }

    /// The delay of a session's trigger, if it has one of this name that lets this activation pass.
    fn accept_trigger(&mut self, id: SessionId, name: &[u8], producer_name: &[u8], before: usize) -> Option<u32> {
        let session = self.sessions.get(&id).filter(|session| session.state != State::Cloned)?;
        let triggers = &session.config.trigger_config.as_ref()?.triggers;
        let index = triggers.iter().position(|trigger| trigger.name.as_deref().unwrap_or_default() == name)?;
        let trigger = &triggers[index];
        let pattern = session.triggers.patterns.get(index)?;
        if pattern.as_ref().is_some_and(|pattern| !pattern.matches(producer_name)) {
            return None;
        }
        let skip_probability = trigger.skip_probability.unwrap_or(0.0);
        if skip_probability > 0.0 && self.random.fraction() < skip_probability {
            return None;
        }
        let max = trigger.max_per_24_h.unwrap_or(0);
        (max == 0 || before < max as usize).then(|| trigger.stop_delay_ms.unwrap_or(0))
    }

    fn hit(&mut self, id: SessionId, received: Received, delay_ms: u32, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.snapshot(cx.now);
        let is_first = !core::mem::replace(&mut session.triggers.is_hit, true);
        if session.triggers.received.len() < MAX_RECEIVED {
            session.triggers.received.push(received.clone());
        }
        match mode_of(&session.config) {
            Some(TriggerMode::START_TRACING) if session.state == State::Configured => {
                session.set_duration(delay_ms);
                self.start(id, cx);
            }
            Some(TriggerMode::STOP_TRACING)
                if is_first && matches!(session.state, State::Configured | State::Started) =>
            {
                self.set_timer(id, Purpose::TriggerStop, TimerClock::Monotonic, delay_ms, cx);
            }
            Some(TriggerMode::CLONE_SNAPSHOT) if delay_ms == 0 => self.notify_clone_trigger(id, &received),
            Some(TriggerMode::CLONE_SNAPSHOT) if session.triggers.delayed.len() < MAX_DELAYED => {
                session.triggers.last_delayed += 1;
                let number = session.triggers.last_delayed;
                session.triggers.delayed.insert(number, received);
                self.set_timer(id, Purpose::CloneTrigger(number), TimerClock::Monotonic, delay_ms, cx);
            }
            Some(TriggerMode::CLONE_SNAPSHOT) => {
                cx.warn(format!("session {}: {MAX_DELAYED} triggers wait already, one is ignored", id.0));
            }
            _ => {}
        }
    }

    /// The delay of a clone trigger is over.
    pub(crate) fn clone_trigger(&mut self, id: SessionId, number: u64) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if let Some(received) = session.triggers.delayed.remove(&number) {
            self.notify_clone_trigger(id, &received);
        }
    }

    /// The time for a start trigger is over.
    pub(crate) fn trigger_timeout(&mut self, id: SessionId, cx: &mut Context<'_>) {
        if self.sessions.get(&id).is_some_and(|session| session.state == State::Configured) {
            self.disable(id, true, None, cx);
        }
    }

    /// The delay of a stop trigger is over.
    pub(crate) fn trigger_stop(&mut self, id: SessionId, cx: &mut Context<'_>) {
        self.flush(id, 0, FlushReason::TraceStop, AfterFlush::StopSession, cx);
    }
}
