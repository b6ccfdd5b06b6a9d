//! Names of presets as values of an option.

use clap::builder::{PossibleValue, PossibleValuesParser};

/// Name of the base of a config that has only the events of programs.
pub(crate) const EVENTS: &str = "events";
/// Its content, in a few words.
pub(crate) const ABOUT_EVENTS: &str = "Events of programs only";

/// Returns a parser for the names of presets.
pub(crate) fn names() -> PossibleValuesParser {
    values().into()
}

/// Returns a parser for the names of presets and of [`EVENTS`].
pub(crate) fn names_with_events() -> PossibleValuesParser {
    let mut values = values();
    values.push(PossibleValue::new(EVENTS).help(ABOUT_EVENTS));
    values.into()
}

fn values() -> Vec<PossibleValue> {
    esatto_probes::presets::ALL.iter().map(|preset| PossibleValue::new(preset.name).help(preset.about)).collect()
}
