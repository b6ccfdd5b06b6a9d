//! Tells the user if a session inside this process has named only categories that do not exist.

use std::sync::Mutex;

use esatto_protozero::ProtoString;
use esatto_schema::{TraceConfig, TrackEventConfig};

use crate::category::selection::{self, covers};
use crate::category::{Category, known, registry};
use crate::diagnostics;

/// The configurations of a session's track events, if all of them name categories.
#[derive(Debug, Default)]
pub(super) struct Patterns(Mutex<Vec<TrackEventConfig>>);

impl Patterns {
    /// Keeps the patterns of the session's latest configuration.
    pub(super) fn set(&self, config: &TraceConfig) {
        let sources = config.data_sources.iter().filter_map(|source| source.config.as_ref());
        let track_events =
            sources.filter(|config| config.name.as_ref().is_some_and(|name| name.as_bytes() == b"track_event"));
        let configs: Option<Vec<_>> =
            track_events.map(|config| config.track_event_config.as_deref().cloned()).collect();
        let configs = configs.filter(|configs| configs.iter().all(|config| !config.enabled_categories.is_empty()));
        if let Ok(mut kept) = self.0.try_lock() {
            *kept = configs.unwrap_or_default();
        }
    }

    /// Reports, once, if no category of this process matches one of the patterns. Call it when the
    /// session stops: until then, categories register when they are first used.
    pub(super) fn explain(&self) {
        // A forked child may find it locked.
        let Ok(configs) = self.0.try_lock() else { return };
        let patterns = || configs.iter().flat_map(|config| &config.enabled_categories).map(ProtoString::as_bytes);
        let known = known::Names::all();
        let is_meant = |&category: &&'static Category| {
            configs.iter().any(|config| selection::enables(config, category))
                || patterns().any(|pattern| covers(pattern, category.name()))
        };
        if configs.is_empty() || known.is_empty() || registry::all().iter().any(is_meant) {
            return;
        }
        let named: Vec<_> = patterns().map(|pattern| format!("`{}`", String::from_utf8_lossy(pattern))).collect();
        let what = "a session inside this process has recorded no track event: no category matches";
        diagnostics::say_once(format!("{what} {}{}", named.join(" or "), known.remedy(patterns())));
    }
}
