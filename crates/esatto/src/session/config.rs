//! The configuration of a session: a convenient way to make a `TraceConfig`.

use std::path::PathBuf;
use std::time::Duration;

use esatto_protozero::ProtoString;
use esatto_schema::data_source_config::BufferExhaustedPolicy;
use esatto_schema::trace_config::buffer_config::FillPolicy;
use esatto_schema::trace_config::{BufferConfig, DataSource, IncrementalStateConfig, trigger_config};
use esatto_schema::{DataSourceConfig, TraceConfig, TrackEventConfig};

use super::named_file::NamedFile;
use super::trace_file::TraceFile;
use crate::backend::Backend;
use crate::error::Error;
use crate::os::OwnedFd;

/// The time that a service allows for a flush and for a stop, by default
/// (`docs/spec/client-library.md` §2).
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
/// The default buffer: how much the recorded threads may produce before it is read.
const BUFFER_SIZE_KB: u32 = 16 * 1024;
/// How often programs write their names again for a service outside of this process.
const CLEAR_PERIOD_MS: u32 = 1000;

/// The tags of categories that are not recorded unless they are asked for.
const TAGS_OFF: [&str; 2] = ["slow", "debug"];

/// The configuration of a session: its data, duration and destination.
///
/// By default it records all track events, except those of categories tagged `slow` or `debug`,
/// into one ring buffer of 16 MiB. The same rule holds for all ways to record:
/// `docs/reference/config.md` in the repository has a table of them.
///
/// A ring needs the names of its events, which programs send once. A service of this library asks
/// for them again while the ring fills. For others, this configuration says that each program sends
/// them once a second (`incremental_state_config`), unless the session runs inside this process. A
/// `TraceConfig` of your own is sent as it is.
///
/// ```
/// use std::time::Duration;
/// let config = esatto::SessionConfig::new()
///     .categories(["net", "db.*"])
///     .without_categories(["db.rows"])
///     .buffer_size_kb(64 * 1024)
///     .duration(Duration::from_secs(10));
/// assert_eq!(config.trace_config().duration_ms, Some(10_000));
/// ```
///
/// Everything else is a field of [`TraceConfig`]: [`edit`](Self::edit) gives access to it, and a
/// `TraceConfig` can be used in place of this.
#[derive(Debug)]
#[must_use = "pass it to a session"]
pub struct SessionConfig {
    config: TraceConfig,
    file: TraceFile,
    /// The session gets a `clear_period_ms` if it needs one.
    keeps_names: bool,
}

impl SessionConfig {
    /// Makes a configuration that records all track events, except those of categories tagged
    /// `slow` or `debug`, into a ring buffer of 16 MiB.
    pub fn new() -> Self {
        Self { config: track_events(BUFFER_SIZE_KB), file: TraceFile::AsConfigured, keeps_names: true }
    }

    /// Records only these categories. Patterns may end in `*`. A category tagged `slow` or `debug`
    /// is recorded only if it is named in full, or by [`tags`](Self::tags).
    pub fn categories<S: Into<String>>(mut self, patterns: impl IntoIterator<Item = S>) -> Self {
        if let Some(events) = self.track_event_config() {
            let is_all = |patterns: &[ProtoString]| patterns.iter().any(|pattern| pattern.as_bytes() == b"*");
            if !is_all(&events.disabled_categories) {
                events.disabled_categories.push("*".into());
                events.enabled_categories.clear();
            }
            events.enabled_categories.extend(patterns.into_iter().map(|pattern| pattern.into().into()));
        }
        self
    }

    /// Also records categories with these tags. Tags may end in `*`. Categories tagged [`slow` or
    /// `debug`](crate::categories) are off otherwise, unless [`categories`](Self::categories) names
    /// them in full.
    ///
    /// `tags(["slow"])` leaves categories tagged `debug` off, and `tags(["*"])` records all.
    pub fn tags<S: Into<String>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        if let Some(events) = self.track_event_config() {
            if events.enabled_tags.is_empty() && events.disabled_tags.is_empty() {
                events.disabled_tags.extend(TAGS_OFF.map(ProtoString::from));
            }
            for tag in tags {
                let tag = tag.into();
                let selects = |off: &[u8]| match tag.strip_suffix('*') {
                    Some(prefix) => off.starts_with(prefix.as_bytes()),
                    None => off == tag.as_bytes(),
                };
                events.disabled_tags.retain(|off| !selects(off.as_bytes()));
                events.enabled_tags.push(tag.into());
            }
        }
        self
    }

    /// Leaves out these categories. Patterns may end in `*`. The more exact pattern wins; of
    /// equally exact ones, the one that enables.
    pub fn without_categories<S: Into<String>>(mut self, patterns: impl IntoIterator<Item = S>) -> Self {
        if let Some(events) = self.track_event_config() {
            events.disabled_categories.extend(patterns.into_iter().map(|pattern| pattern.into().into()));
        }
        self
    }

    /// Sets the size of the buffer.
    ///
    /// In a session inside the program that stalls and writes a file, it is at least 1024.
    pub fn buffer_size_kb(mut self, size_kb: u32) -> Self {
        if let Some(buffer) = self.config.buffers.first_mut() {
            buffer.size_kb = Some(size_kb);
        }
        self
    }

    /// Keeps the oldest data when the buffer is full, instead of the newest.
    pub fn discard_when_full(mut self) -> Self {
        if let Some(buffer) = self.config.buffers.first_mut() {
            buffer.fill_policy = Some(FillPolicy::DISCARD);
        }
        self
    }

    /// Lets threads wait, instead of losing events, when they trace faster than the service reads:
    /// at most half a minute each time (`docs/spec/client-library.md` §10). A session inside this
    /// process that [writes into a file](Self::write_into) then also waits for the file.
    pub fn stall(mut self) -> Self {
        if let Some(source) = self.track_event_source() {
            source.buffer_exhausted_policy = Some(BufferExhaustedPolicy::BUFFER_EXHAUSTED_STALL_THEN_DROP);
        }
        self
    }

    /// Ends the session after this time.
    pub fn duration(mut self, duration: Duration) -> Self {
        self.config.duration_ms = Some(millis(duration));
        self
    }

    /// Names the session, so that it can be [cloned](crate::Session::clone_session).
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.unique_session_name = Some(name.into().into());
        self
    }

    /// Starts recording when a producer activates this trigger, and stops `stop_delay` later. The
    /// session waits `timeout` for the trigger.
    pub fn start_on_trigger(mut self, name: impl Into<String>, stop_delay: Duration, timeout: Duration) -> Self {
        let trigger = trigger_config::Trigger {
            name: Some(name.into().into()),
            stop_delay_ms: Some(millis(stop_delay)),
            ..Default::default()
        };
        let triggers = self.config.trigger_config.get_or_insert_default();
        triggers.trigger_mode = Some(trigger_config::TriggerMode::START_TRACING);
        triggers.trigger_timeout_ms = Some(millis(timeout));
        triggers.triggers.push(trigger);
        self
    }

    /// Also records another data source.
    pub fn data_source(mut self, config: DataSourceConfig) -> Self {
        self.config.data_sources.push(DataSource { config: Some(Box::new(config)), ..Default::default() });
        self
    }

    /// Lets the service write the trace into this file, so the buffer need not hold all of it. A
    /// service inside this process collects and writes all events every 250 ms. Another one writes
    /// twice a second, and collects once a second. This process creates the file, which needs the
    /// permission to, and replaces a file that exists; while another session of this process writes
    /// it, the start fails. This session then has nothing to [read](crate::Session::read). If
    /// another program removes, replaces or empties the file during the recording, the stop fails.
    ///
    /// Threads that trace faster than the service collects lose events, which a
    /// [notice](crate::Builder::notices) tells at the end. [`stall`](Self::stall) lets them wait
    /// instead.
    pub fn write_into(mut self, path: impl Into<PathBuf>) -> Self {
        self.file = TraceFile::Path(path.into());
        self
    }

    /// As [`write_into`](Self::write_into), into a file or pipe that is open already. The trace
    /// begins at the current position of the file, or at its end if the file is open for appending.
    /// The session can be [cloned](crate::Session::clone_session_into) only if the file is open for
    /// reading and writing.
    pub fn write_into_fd(mut self, file: impl Into<OwnedFd>) -> Self {
        self.file = TraceFile::Descriptor(file.into());
        self
    }

    /// Sets how often the service writes into the file.
    pub fn file_write_period(mut self, period: Duration) -> Self {
        self.config.file_write_period_ms = Some(millis(period));
        self
    }

    /// Sends the configuration to the service with [`Session::set_up`](crate::Session::set_up),
    /// without starting. The later start is then quick.
    pub fn deferred_start(mut self) -> Self {
        self.config.deferred_start = Some(true);
        self
    }

    /// Changes any field that has no method here.
    ///
    /// ```
    /// use esatto::SessionConfig;
    /// use esatto::schema::trace_config::IncrementalStateConfig;
    /// // Programs write their names again each 100 ms, because a small ring overwrites old ones.
    /// let names = IncrementalStateConfig { clear_period_ms: Some(100), ..Default::default() };
    /// let config = SessionConfig::new().edit(|c| c.incremental_state_config = Some(names));
    /// # drop(config);
    /// ```
    pub fn edit(mut self, change: impl FnOnce(&mut TraceConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// Returns the message.
    #[must_use]
    pub const fn trace_config(&self) -> &TraceConfig {
        &self.config
    }

    fn track_event_source(&mut self) -> Option<&mut DataSourceConfig> {
        self.config.data_sources.iter_mut().find_map(|source| {
            source.config.as_deref_mut().filter(|c| c.name.as_ref().is_some_and(|n| n.as_bytes() == b"track_event"))
        })
    }

    fn track_event_config(&mut self) -> Option<&mut TrackEventConfig> {
        Some(self.track_event_source()?.track_event_config.get_or_insert_default())
    }

    /// Returns the message and the file, opened, for a session of this backend. If this process has
    /// created the file, also returns its name.
    pub(crate) fn open(self, backend: &Backend) -> Result<(TraceConfig, Option<OwnedFd>, Option<NamedFile>), Error> {
        let Self { mut config, file, keeps_names } = self;
        if keeps_names && *backend != Backend::in_process() && config.incremental_state_config.is_none() {
            let clears = IncrementalStateConfig { clear_period_ms: Some(CLEAR_PERIOD_MS), ..Default::default() };
            config.incremental_state_config = Some(clears);
        }
        let (file, named) = file.open(backend, &mut config)?;
        Ok((config, file, named))
    }
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl From<TraceConfig> for SessionConfig {
    fn from(config: TraceConfig) -> Self {
        Self { config, file: TraceFile::AsConfigured, keeps_names: false }
    }
}

/// Makes a configuration that records all track events, except those of categories tagged `slow` or
/// `debug`, into one ring buffer of this many KiB.
///
/// To record those too, clear the list `disabled_tags` and name the tags in `enabled_tags`, or use
/// [`SessionConfig::tags`].
#[must_use]
pub fn track_events(buffer_size_kb: u32) -> TraceConfig {
    let categories = TrackEventConfig {
        enabled_categories: vec!["*".into()],
        // The default of programs with the C++ library and with this one, but not of programs with
        // the C library.
        disabled_tags: TAGS_OFF.map(ProtoString::from).into(),
        ..Default::default()
    };
    let source = DataSourceConfig {
        name: Some("track_event".into()),
        track_event_config: Some(Box::new(categories)),
        ..Default::default()
    };
    TraceConfig {
        buffers: vec![BufferConfig { size_kb: Some(buffer_size_kb), ..Default::default() }],
        data_sources: vec![DataSource { config: Some(Box::new(source)), ..Default::default() }],
        ..Default::default()
    }
}

/// Returns how long the service may take to flush and to stop with this configuration.
pub(super) fn timeouts(config: &TraceConfig) -> (Duration, Duration) {
    let of = |ms: Option<u32>| ms.filter(|&ms| ms != 0).map_or(DEFAULT_TIMEOUT, |ms| Duration::from_millis(ms.into()));
    (of(config.flush_timeout_ms), of(config.data_source_stop_timeout_ms))
}

/// Returns whether a trigger starts the session.
pub(super) fn is_armed(config: &TraceConfig) -> bool {
    use trigger_config::TriggerMode;
    config.trigger_config.as_ref().is_some_and(|t| t.trigger_mode == Some(TriggerMode::START_TRACING))
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
