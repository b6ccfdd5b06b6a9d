//! Sessions that start or stop when a producer says so (`docs/spec/service.md §11`).
//!
//! A trigger for a snapshot (CLONE_SNAPSHOT) does nothing by itself: the consumer is told of it, and makes the clone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use esatto_protozero::Owned;
use esatto_schema::TraceConfig;
use esatto_schema::trace_config::trigger_config::TriggerMode;

use crate::api::TimerClock;
use crate::client_text::{MAX_NAME_BYTES, Name};
use crate::context::Context;
use crate::ids::{ProducerId, SessionId};
use crate::name_pattern::{NamePattern, Quota};
use crate::service::Service;
use crate::session::{AfterFlush, FlushReason, Session, State};
use crate::timers::Purpose;

/// Triggers kept between reads. Later ones still act, but are not told in the trace; the statistics
/// count them.
const MAX_RECEIVED: usize = 1024;

/// Clone triggers of a session whose delay is not over. Later ones do not act; the log says so, and
/// the statistics count them.
const MAX_DELAYED: usize = 256;

/// Triggers of one call that are looked at. The log says how many more there were.
const MAX_TRIGGERS_PER_CALL: usize = 4096;

/// Triggers of one call that may hit; each can hit every session. The log says how many more there
/// were.
const MAX_HITS_PER_CALL: usize = 1024;

/// Activations of one trigger whose time is remembered exactly for `max_per_24_h`. Of later ones
/// those of about ten minutes are remembered together.
const MAX_EXACT_ACTIVATIONS: usize = 128;

/// Triggers whose activations are counted. While there are so many, others are not limited by
/// `max_per_24_h`, which the log says.
const MAX_NAMES: usize = 4096;

const DAY_NS: u64 = 24 * 3600 * 1_000_000_000;

/// Activations so close together are remembered as one, when there are many.
const MERGED_NS: u64 = DAY_NS / MAX_EXACT_ACTIVATIONS as u64;

/// Time between two looks through all names for those that are old.
const SWEEP_NS: u64 = 60 * 1_000_000_000;

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
    let mut names = BTreeSet::new();
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
    /// The compiled `producer_name_regex` of each.
    pub(crate) patterns: Vec<Option<NamePattern>>,
    /// One was accepted.
    pub(crate) is_hit: bool,
    /// Accepted, and not read yet.
    pub(crate) received: Vec<Received>,
    /// Clone triggers that were accepted and whose delay is not over, by the number of their timer.
    delayed: BTreeMap<u64, Received>,
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
    pub(crate) name: Name,
    pub(crate) producer_name: Name,
    pub(crate) producer_uid: i32,
    pub(crate) stop_delay_ms: u64,
}

/// Which sessions wait for which triggers.
#[derive(Debug, Default)]
pub(crate) struct Listeners(BTreeMap<Name, BTreeMap<SessionId, usize>>);

impl Listeners {
    pub(crate) fn add(&mut self, session: &Session) {
        for (index, name) in names_of(session).enumerate() {
            match self.0.get_mut(name) {
                Some(of_name) => drop(of_name.insert(session.id, index)),
                None => drop(self.0.insert(name.into(), BTreeMap::from([(session.id, index)]))),
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

    /// The name as it is kept, and the sessions with the number of their trigger.
    fn of(&self, name: &[u8]) -> Option<(Name, Vec<(SessionId, usize)>)> {
        let (name, sessions) = self.0.get_key_value(name)?;
        Some((Name::clone(name), sessions.iter().map(|(&session, &index)| (session, index)).collect()))
    }
}

/// The names of the triggers of a session that is no clone.
fn names_of(session: &Session) -> impl Iterator<Item = &[u8]> {
    let triggers = session.config.trigger_config.as_ref().filter(|_| session.clone.is_none());
    let triggers = triggers.map_or(&[][..], |config| &config.triggers);
    triggers.iter().map(|trigger| trigger.name.as_deref().unwrap_or_default())
}

/// When each trigger was activated in the last 24 hours. Only names that a config has come in.
#[derive(Debug, Default)]
pub(crate) struct History {
    by_name: BTreeMap<Name, Activations>,
    /// When all names may be looked through again.
    next_sweep_ns: u64,
}

/// Activations of one trigger.
#[derive(Debug, Default)]
struct Activations {
    /// When, and how many since then; oldest first.
    times: VecDeque<(u64, usize)>,
    count: usize,
}

impl Activations {
    fn forget_old(&mut self, now_ns: u64) {
        while let Some(&(at_ns, count)) = self.times.front() {
            if now_ns.saturating_sub(at_ns) < DAY_NS {
                break;
            }
            self.count -= count;
            self.times.pop_front();
        }
    }

    fn add(&mut self, now_ns: u64) {
        self.forget_old(now_ns);
        self.count += 1;
        match self.times.back_mut() {
            Some((at_ns, count)) if now_ns.saturating_sub(*at_ns) < MERGED_NS && self.count > MAX_EXACT_ACTIVATIONS => {
                *count += 1;
            }
            _ => self.times.push_back((now_ns, 1)),
        }
    }
}

impl History {
    fn count(&mut self, name: &[u8], now_ns: u64) -> usize {
        let Some(activations) = self.by_name.get_mut(name) else { return 0 };
        activations.forget_old(now_ns);
        activations.count
    }

    /// Counts an activation; false if there are too many names.
    fn add(&mut self, name: &Name, now_ns: u64) -> bool {
        if let Some(activations) = self.by_name.get_mut(name) {
            activations.add(now_ns);
            return true;
        }
        if self.by_name.len() >= MAX_NAMES {
            if now_ns < self.next_sweep_ns {
                return false;
            }
            self.next_sweep_ns = now_ns.saturating_add(SWEEP_NS);
            self.by_name.retain(|_, activations| {
                activations.forget_old(now_ns);
                activations.count > 0
            });
            if self.by_name.len() >= MAX_NAMES {
                return false;
            }
        }
        self.by_name.entry(Name::clone(name)).or_default().add(now_ns);
        true
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
        // Instances to come are told.
        self.instance_configs.clear();
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
                self.timers.set(id, Purpose::TriggerTimeout, TimerClock::Monotonic, timeout_ms, cx);
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
        let Some(sender) = self.producers.get(producer) else { return };
        let (producer_name, producer_uid) = (Name::clone(&sender.name), sender.peer.uid);
        let mut names = names;
        let (mut hits, mut ignored, mut is_uncounted) = (0, 0, false);
        let mut delayed_lost = 0;
        for name in names.by_ref().take(MAX_TRIGGERS_PER_CALL) {
            cx.charge(1);
            cx.charge_bytes(name.len());
            // No config has a longer name.
            let listeners = if name.len() <= MAX_NAME_BYTES { self.listeners.of(name) } else { None };
            let Some((name, sessions)) = listeners else { continue };
            if hits >= MAX_HITS_PER_CALL {
                ignored += 1;
                continue;
            }
            hits += 1;
            let before = self.trigger_history.count(&name, cx.now.boottime_ns);
            let mut is_accepted = false;
            for (id, index) in sessions {
                cx.charge(1);
                let Some(delay_ms) = self.accept_trigger(id, index, &producer_name, before, cx) else { continue };
                is_accepted = true;
                let received = Received {
                    boottime_ns: cx.now.boottime_ns,
                    name: Name::clone(&name),
                    producer_name: Name::clone(&producer_name),
                    producer_uid,
                    stop_delay_ms: delay_ms.into(),
                };
                delayed_lost += usize::from(!self.hit(id, received, delay_ms, cx));
            }
            if is_accepted {
                is_uncounted |= !self.trigger_history.add(&name, cx.now.boottime_ns);
            }
        }
        ignored += names.count();
        if ignored > 0 {
            let name = String::from_utf8_lossy(&producer_name);
            cx.warn(format!("producer {name:?} sends too many triggers in one call: {ignored} are ignored"));
        }
        if delayed_lost > 0 {
            cx.warn(format!("{MAX_DELAYED} clone triggers of a session wait already: {delayed_lost} are ignored"));
        }
        if is_uncounted {
            cx.warn(format!("{MAX_NAMES} triggers are counted already: max_per_24_h does not hold for others"));
        }
    }

    /// The delay of a session's trigger of this number, if it lets this activation pass.
    fn accept_trigger(
        &mut self,
        id: SessionId,
        index: usize,
        producer_name: &Name,
        before: usize,
        cx: &mut Context<'_>,
    ) -> Option<u32> {
        let session = self.sessions.get(&id).filter(|session| session.state != State::Cloned)?;
        let trigger = session.config.trigger_config.as_ref()?.triggers.get(index)?;
        let pattern = session.triggers.patterns.get(index)?;
        if pattern.as_ref().is_some_and(|pattern| !pattern.matches(id, producer_name, cx)) {
            return None;
        }
        let skip_probability = trigger.skip_probability.unwrap_or(0.0);
        if skip_probability > 0.0 && self.random.fraction() < skip_probability {
            return None;
        }
        let max = trigger.max_per_24_h.unwrap_or(0);
        (max == 0 || before < max as usize).then(|| trigger.stop_delay_ms.unwrap_or(0))
    }

    /// A session lets a trigger pass; false if it is ignored, because too many wait.
    fn hit(&mut self, id: SessionId, received: Received, delay_ms: u32, cx: &mut Context<'_>) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else { return true };
        session.snapshot(cx.now);
        let is_first = !core::mem::replace(&mut session.triggers.is_hit, true);
        if session.triggers.received.len() < MAX_RECEIVED {
            session.triggers.received.push(received.clone());
        } else {
            session.triggers_lost += 1;
        }
        match mode_of(&session.config) {
            Some(TriggerMode::START_TRACING) if session.state == State::Configured => {
                session.set_duration(delay_ms);
                self.start(id, cx);
            }
            Some(TriggerMode::STOP_TRACING)
                if is_first && matches!(session.state, State::Configured | State::Started) =>
            {
                self.timers.set(id, Purpose::TriggerStop, TimerClock::Monotonic, delay_ms, cx);
            }
            Some(TriggerMode::CLONE_SNAPSHOT) if delay_ms == 0 => self.notify_clone_trigger(id, received),
            Some(TriggerMode::CLONE_SNAPSHOT) if session.triggers.delayed.len() < MAX_DELAYED => {
                session.triggers.last_delayed += 1;
                let number = session.triggers.last_delayed;
                session.triggers.delayed.insert(number, received);
                self.timers.set(id, Purpose::CloneTrigger(number), TimerClock::Monotonic, delay_ms, cx);
            }
            Some(TriggerMode::CLONE_SNAPSHOT) => {
                session.triggers_lost += 1;
                return false;
            }
            _ => {}
        }
        true
    }

    /// The delay of a clone trigger is over.
    pub(crate) fn clone_trigger(&mut self, id: SessionId, number: u64) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if let Some(received) = session.triggers.delayed.remove(&number) {
            self.notify_clone_trigger(id, received);
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
