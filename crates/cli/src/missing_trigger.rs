//! [`MissingTrigger`]: triggers of a config that did not come.

use core::fmt;

use esatto_schema::TraceConfig;
use esatto_schema::trace_config::trigger_config::TriggerMode;

use crate::empty_recording::Names;

/// A trigger config whose trigger did not come.
#[derive(Debug)]
pub(crate) struct MissingTrigger {
    names: Vec<String>,
}

impl MissingTrigger {
    /// Returns the mode of the config's triggers, if it has any (`docs/spec/service.md` §14).
    pub(crate) fn mode(config: &TraceConfig) -> Option<TriggerMode> {
        let triggers = config.trigger_config.as_ref()?;
        if triggers.use_clone_snapshot_if_available == Some(true) {
            return Some(TriggerMode::CLONE_SNAPSHOT);
        }
        triggers.trigger_mode.filter(|mode| *mode != TriggerMode::UNSPECIFIED)
    }

    pub(crate) fn of(config: &TraceConfig) -> Self {
        let triggers = config.trigger_config.iter().flat_map(|config| &config.triggers);
        let names = triggers.map(|trigger| {
            let name = trigger.name.as_ref();
            name.map_or_else(String::new, |name| String::from_utf8_lossy(name.as_bytes()).into_owned())
        });
        Self { names: names.collect() }
    }
}

impl fmt::Display for MissingTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.names[..] {
            [name] => write!(f, "the trigger {name:?} did not come"),
            names => write!(f, "none of the triggers came: {}", Names(names.iter().map(String::as_str).collect())),
        }
    }
}
