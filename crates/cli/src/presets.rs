//! Names of presets as values of an option.

use clap::builder::{PossibleValue, PossibleValuesParser};

/// Returns a parser for the names of presets.
pub(crate) fn names() -> PossibleValuesParser {
    esatto_probes::presets::ALL
        .iter()
        .map(|preset| PossibleValue::new(preset.name).help(preset.about))
        .collect::<Vec<_>>()
        .into()
}
