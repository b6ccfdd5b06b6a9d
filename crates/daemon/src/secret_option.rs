//! The option `--secret-file` of the programs.

use std::path::Path;

use crate::error::Error;
use crate::shared_secret::SharedSecret;

/// Reads the secret of the option, if it is given.
pub(crate) fn read_secret(path: Option<&Path>) -> Result<Option<SharedSecret>, Error> {
    let read = |path: &Path| {
        SharedSecret::read(path).map_err(|source| Error::Secret { path: path.display().to_string(), source })
    };
    path.map(read).transpose()
}
