//! [`LiveInstances`]: instances that the service has asked for.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use esatto_schema::DataSourceConfigReader;

use crate::data_source::InstanceId;

/// Instances of one connection. A service that asks for more gets the reason in the trace.
pub(super) const MAX_INSTANCES: usize = 1024;

/// Time that services give an instance to stop, if its config does not say it.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Time by which a session may outlast its duration at least (`docs/spec/probes.md` §1).
const SHORTEST_WATCHDOG: Duration = Duration::from_secs(5 * 60);
const EXTRA_TIME: Duration = Duration::from_millis(5000);

/// An instance that the service has asked for.
#[derive(Debug)]
pub(super) struct LiveInstance {
    /// Number that the service gave to it.
    pub(super) service_id: u64,
    pub(super) data_source: String,
    pub(super) worker: usize,
    pub(super) target_buffer: u16,
    pub(super) phase: Phase,
    /// The instance is stopped at this time, even if the service does not ask for it.
    watchdog: Option<Instant>,
    stop_timeout: Duration,
    duration: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    SetUp,
    /// The worker was told to start it.
    Starting,
    Started,
    /// The worker was told to stop it. It is told to the service at this time, even if the worker
    /// is not done.
    Stopping(Instant),
}

/// All of them. Ids are never used again, so that late answers of workers do not meet instances of
/// another connection.
#[derive(Debug, Default)]
pub(super) struct LiveInstances {
    all: BTreeMap<InstanceId, LiveInstance>,
    by_service_id: BTreeMap<u64, InstanceId>,
    last: u64,
}

impl LiveInstance {
    pub(super) fn new(service_id: u64, data_source: &str, worker: usize, config: &[u8]) -> Self {
        let config = DataSourceConfigReader::new(config);
        let ms = |ms: Option<u32>| Duration::from_millis(ms.unwrap_or(0).into());
        let stop_timeout = Some(ms(config.stop_timeout_ms())).filter(|timeout| !timeout.is_zero());
        Self {
            service_id,
            data_source: data_source.to_owned(),
            worker,
            target_buffer: config.target_buffer().and_then(|buffer| u16::try_from(buffer).ok()).unwrap_or(0),
            phase: Phase::SetUp,
            watchdog: None,
            stop_timeout: stop_timeout.unwrap_or(STOP_TIMEOUT),
            duration: ms(config.trace_duration_ms()),
        }
    }

    /// Notes that the worker was told to start it.
    pub(super) fn starting(&mut self, now: Instant) {
        self.phase = Phase::Starting;
        if !self.duration.is_zero() {
            let longest = 2 * (EXTRA_TIME + self.duration + self.stop_timeout);
            self.watchdog = now.checked_add(longest.max(SHORTEST_WATCHDOG));
        }
    }

    /// Notes that the worker was told to stop it. The service is told in time, even if the worker
    /// hangs.
    pub(super) fn stopping(&mut self, now: Instant) {
        self.watchdog = None;
        self.phase = Phase::Stopping(now + self.time_to_stop());
    }

    /// Returns the time after which the service is told that the instance has stopped. The service
    /// itself waits a little longer.
    fn time_to_stop(&self) -> Duration {
        self.stop_timeout * 3 / 4
    }

    /// Returns why the instance did not stop in time.
    pub(super) fn reason_to_be_late(&self) -> String {
        if self.stop_timeout >= STOP_TIMEOUT {
            return "the data source does not stop in time: a file that it reads may hang".to_owned();
        }
        format!(
            "the data source did not stop within {:?}, because the config has `data_source_stop_timeout_ms: {}`: leave it \
             out, or give it {} or more",
            self.time_to_stop(),
            self.stop_timeout.as_millis(),
            STOP_TIMEOUT.as_millis()
        )
    }
}

impl LiveInstances {
    pub(super) fn insert(&mut self, instance: LiveInstance) -> InstanceId {
        self.last += 1;
        let id = InstanceId(self.last);
        self.by_service_id.insert(instance.service_id, id);
        self.all.insert(id, instance);
        id
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Finds an instance by the number of the service.
    pub(super) fn find(&mut self, service_id: u64) -> Option<(InstanceId, &mut LiveInstance)> {
        let id = *self.by_service_id.get(&service_id)?;
        Some((id, self.all.get_mut(&id)?))
    }

    pub(super) fn get_mut(&mut self, id: InstanceId) -> Option<&mut LiveInstance> {
        self.all.get_mut(&id)
    }

    pub(super) fn remove(&mut self, id: InstanceId) -> Option<LiveInstance> {
        let instance = self.all.remove(&id)?;
        if self.by_service_id.get(&instance.service_id) == Some(&id) {
            self.by_service_id.remove(&instance.service_id);
        }
        Some(instance)
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.by_service_id.clear();
    }

    /// Returns the numbers that the service gave to the instances.
    pub(super) fn service_ids(&self) -> impl Iterator<Item = u64> {
        self.by_service_id.keys().copied()
    }

    /// Returns all instances that are started.
    pub(super) fn started(&self) -> impl Iterator<Item = (InstanceId, &LiveInstance)> {
        let is_started = |instance: &LiveInstance| matches!(instance.phase, Phase::Starting | Phase::Started);
        self.all.iter().filter(move |(_, instance)| is_started(instance)).map(|(&id, instance)| (id, instance))
    }

    /// Returns the instances whose worker is late with their stop.
    pub(super) fn late_to_stop(&self, now: Instant) -> Vec<InstanceId> {
        let is_late = |instance: &LiveInstance| matches!(instance.phase, Phase::Stopping(due) if due <= now);
        self.all.iter().filter(|(_, instance)| is_late(instance)).map(|(&id, _)| id).collect()
    }

    /// Returns the instances that the service has forgotten to stop.
    pub(super) fn forgotten(&self, now: Instant) -> Vec<InstanceId> {
        let is_forgotten = |instance: &LiveInstance| instance.watchdog.is_some_and(|due| due <= now);
        self.all.iter().filter(|(_, instance)| is_forgotten(instance)).map(|(&id, _)| id).collect()
    }

    /// Returns when [`late_to_stop`](Self::late_to_stop) or [`forgotten`](Self::forgotten) may have
    /// a result.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let due = |instance: &LiveInstance| match instance.phase {
            Phase::Stopping(due) => Some(due),
            _ => instance.watchdog,
        };
        self.all.values().filter_map(due).min()
    }
}

#[cfg(test)]
mod tests {
    use esatto_protozero::Owned as _;
    use esatto_schema::DataSourceConfig;

    use super::*;

    #[test]
    fn a_short_time_to_stop_is_a_reason_of_its_own() {
        let reason = |stop_timeout_ms| {
            let config = DataSourceConfig { stop_timeout_ms, ..Default::default() }.encode();
            LiveInstance::new(1, "linux.ftrace", 0, &config).reason_to_be_late()
        };
        for usual in [None, Some(0), Some(5000), Some(60_000)] {
            assert_eq!(reason(usual), "the data source does not stop in time: a file that it reads may hang");
        }
        let told = reason(Some(100));
        assert!(told.contains("within 75ms, because the config has `data_source_stop_timeout_ms: 100`"), "{told}");
    }
}
