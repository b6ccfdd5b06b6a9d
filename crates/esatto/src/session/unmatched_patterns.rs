//! Tells the user if a session inside this process has named categories that do not exist.

use std::sync::Mutex;

use esatto_protozero::ProtoString;
use esatto_schema::{TraceConfig, TrackEventConfig};

use crate::category::selection::{self, covers};
use crate::category::{Category, known, registry};
use crate::diagnostics;

/// The configurations of a session's track events.
#[derive(Debug, Default)]
pub(super) struct Patterns(Mutex<Vec<TrackEventConfig>>);

impl Patterns {
    /// Keeps the patterns of the session's latest configuration.
    pub(super) fn set(&self, config: &TraceConfig) {
        let sources = config.data_sources.iter().filter_map(|source| source.config.as_ref());
        let track_events =
            sources.filter(|config| config.name.as_ref().is_some_and(|name| name.as_bytes() == b"track_event"));
        let configs = track_events.map(|config| config.track_event_config.as_deref().cloned().unwrap_or_default());
        if let Ok(mut kept) = self.0.try_lock() {
            *kept = configs.collect();
        }
    }

    /// Returns the categories that only their tags leave out, if no category is on.
    pub(crate) fn left_out_by_tags(&self) -> Option<known::LeftOut> {
        // A forked child may find it locked.
        let configs = self.0.try_lock().ok()?;
        let mut left_out = known::LeftOut::default();
        for category in registry::all() {
            if configs.iter().any(|config| selection::enables(config, category)) {
                return None;
            }
            // A group has no name of its own.
            for member in category.members() {
                let tags = configs.iter().flat_map(|config| selection::tags_in_the_way(config, member));
                left_out.add(member.name(), tags);
            }
        }
        (!left_out.is_empty()).then_some(left_out)
    }

    /// Reports, once, which names and tags no category of this process has. Call it when the
    /// session stops: until then, categories register when they are first used.
    pub(super) fn explain(&self) {
        if let Some(left_out) = self.left_out_by_tags() {
            let what = "a session inside this process has recorded no track event";
            return diagnostics::say_once(format!("{what}: {left_out}; ask with `SessionConfig::tags`"));
        }
        // A forked child may find it locked.
        let Ok(configs) = self.0.try_lock() else { return };
        let patterns = || configs.iter().flat_map(|config| &config.enabled_categories).map(ProtoString::as_bytes);
        let known = known::Names::all();
        let is_meant = |&category: &&'static Category| {
            configs.iter().any(|config| selection::enables(config, category))
                || patterns().any(|pattern| covers(pattern, category.name()))
        };
        let names_all = !configs.is_empty() && configs.iter().all(|config| !config.enabled_categories.is_empty());
        if names_all && !known.is_empty() && !registry::all().iter().any(is_meant) {
            let what = "a session inside this process has recorded no track event: no category matches";
            let named = known::quoted(patterns());
            return diagnostics::say_once(format!("{what} {named}{}", known.remedy(patterns())));
        }
        let tags = configs.iter().flat_map(|config| &config.enabled_tags);
        let missing_tags = tags.filter_map(|tag| known::missing_tag(&String::from_utf8_lossy(tag.as_bytes())));
        for line in known::missing(patterns()).into_iter().chain(missing_tags) {
            diagnostics::say_once(format!("a session inside this process: {line}"));
        }
    }
}
