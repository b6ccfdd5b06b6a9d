//! Patterns of a config that select nothing. They are errors, because they are usually misspelt or
//! out of date.

use prost_reflect::FileDescriptor;

use crate::config::Config;
use crate::descriptors::messages;
use crate::error::Error;
use crate::glob;

/// Checks that each pattern selects a file or a message of `files`.
pub(crate) fn check(config: &Config, files: &[FileDescriptor]) -> Result<(), Error> {
    for pattern in config.features.iter().map(|(_, pattern)| pattern).chain(&config.ungated) {
        if !files.iter().any(|file| glob::matches(pattern, file.name())) {
            return Err(Error::UnusedPattern(pattern.clone()));
        }
    }
    for pattern in &config.owned {
        if !files.iter().flat_map(messages).any(|message| glob::selects(pattern, &message)) {
            return Err(Error::UnusedPattern(pattern.clone()));
        }
    }
    Ok(())
}
