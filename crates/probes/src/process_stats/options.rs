//! [`Options`]: what an instance records.

use core::time::Duration;

use esatto_schema::ProcessStatsConfigReader;
use esatto_schema::process_stats_config::Quirks;

/// Options of `ProcessStatsConfig`, with their bounds applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) scan_all_on_start: bool,
    /// False ignores the threads that events of the kernel name.
    pub(crate) on_demand: bool,
    pub(crate) thread_names: bool,
    pub(crate) main_threads: bool,
    pub(crate) age: bool,
    pub(crate) runtime: bool,
    pub(crate) smaps_rollup: bool,
    pub(crate) dmabuf_rss: bool,
    pub(crate) descriptors: bool,
    pub(crate) poll_period: Option<Duration>,
    /// Polls until values are written again that have not changed; at least 1.
    pub(crate) polls_per_cache_period: u32,
}

/// Shortest period of polls.
const MIN_POLL_MS: u32 = 100;

impl Options {
    pub(crate) fn new(config: &ProcessStatsConfigReader<'_>) -> Self {
        let asked_ms = config.proc_stats_poll_ms().unwrap_or(0);
        let poll_ms = if asked_ms == 0 { 0 } else { asked_ms.max(MIN_POLL_MS) };
        if poll_ms != asked_ms {
            log::info!("linux.process_stats: proc_stats_poll_ms {asked_ms} is too short; polling every {poll_ms} ms");
        }
        let ttl_ms = config.proc_stats_cache_ttl_ms().unwrap_or(0);
        let is_set = |option: Option<bool>| option.unwrap_or(false);
        Self {
            scan_all_on_start: is_set(config.scan_all_processes_on_start()),
            on_demand: !config.quirks().any(|quirk| quirk == Quirks::DISABLE_ON_DEMAND),
            thread_names: is_set(config.record_thread_names()),
            main_threads: !is_set(config.skip_main_thread_message()),
            age: is_set(config.record_process_age()),
            runtime: is_set(config.record_process_runtime()),
            smaps_rollup: is_set(config.scan_smaps_rollup()),
            dmabuf_rss: is_set(config.record_process_dmabuf_rss()),
            descriptors: is_set(config.resolve_process_fds()),
            poll_period: (poll_ms > 0).then(|| Duration::from_millis(poll_ms.into())),
            polls_per_cache_period: ttl_ms.checked_div(poll_ms).unwrap_or(1).max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esatto_protozero::Owned as _;
    use esatto_schema::ProcessStatsConfig;

    fn options(config: &ProcessStatsConfig) -> Options {
        Options::new(&ProcessStatsConfigReader::new(&config.encode()))
    }

    #[test]
    fn short_periods_become_100_ms() {
        let period = |ms| {
            let poll_ms = options(&ProcessStatsConfig { proc_stats_poll_ms: Some(ms), ..Default::default() });
            poll_ms.poll_period.map(|period| period.as_millis())
        };
        assert_eq!([0, 1, 99, 100, 250].map(period), [None, Some(100), Some(100), Some(100), Some(250)]);
    }

    #[test]
    fn the_life_of_cached_values_is_rounded_down_to_polls() {
        let polls = |ttl_ms| {
            let config = ProcessStatsConfig {
                proc_stats_poll_ms: Some(200),
                proc_stats_cache_ttl_ms: Some(ttl_ms),
                ..Default::default()
            };
            options(&config).polls_per_cache_period
        };
        assert_eq!([0, 199, 399, 400, 1000].map(polls), [1, 1, 1, 2, 5]);
    }

    #[test]
    fn quirks_are_followed() {
        let on_demand = |quirks: &[Quirks]| {
            options(&ProcessStatsConfig { quirks: quirks.to_vec(), ..Default::default() }).on_demand
        };
        assert!(on_demand(&[]));
        assert!(on_demand(&[Quirks::DISABLE_INITIAL_DUMP]));
        assert!(!on_demand(&[Quirks::DISABLE_INITIAL_DUMP, Quirks::DISABLE_ON_DEMAND]));
    }
}
