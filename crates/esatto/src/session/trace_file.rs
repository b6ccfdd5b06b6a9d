//! The file of a session: how it is created, and how often the service writes into it.

use std::path::PathBuf;

use esatto_schema::TraceConfig;
use esatto_schema::trace_config::WriteFlushMode;

use super::named_file::NamedFile;
use crate::backend::Backend;
use crate::error::Error;
use crate::os::OwnedFd;

/// How often the service writes into a file, by default.
const FILE_WRITE_PERIOD_MS: u32 = 500;
/// How often the service asks producers for the data that they hold back, so that it reaches the
/// file even if they crash.
const FILE_FLUSH_PERIOD_MS: u32 = 1000;
/// How often a service inside this process does both. The process may be killed, and the service
/// with it.
#[cfg(feature = "in-process")]
const LOCAL_PERIOD_MS: u32 = 250;

/// Where the service writes the trace.
#[derive(Debug)]
pub(super) enum TraceFile {
    /// As the configuration says.
    AsConfigured,
    /// Into a file that this process creates.
    Path(PathBuf),
    /// Into a descriptor.
    Descriptor(OwnedFd),
}

impl TraceFile {
    /// Opens the file. Completes the config of a session that has one.
    ///
    /// Also returns the file with its name, if this process creates it.
    pub(super) fn open(
        self,
        backend: &Backend,
        config: &mut TraceConfig,
    ) -> Result<(Option<OwnedFd>, Option<NamedFile>), Error> {
        let (file, named): (OwnedFd, _) = match self {
            Self::AsConfigured => return Ok((None, None)),
            Self::Descriptor(fd) => (fd, None),
            Self::Path(path) => {
                let (file, named) = NamedFile::create(&path)?;
                (file.into(), named)
            }
        };
        config.write_into_file = Some(true);
        config.output_path = None;
        #[cfg(feature = "in-process")]
        if *backend == Backend::InProcess && config.flush_period_ms.is_none() {
            config.write_flush_mode.get_or_insert(WriteFlushMode::WRITE_FLUSH_ENABLED);
            config.file_write_period_ms.get_or_insert(LOCAL_PERIOD_MS);
            // The service flushes at the same times. The trace processor reports files without it.
            config.flush_period_ms = config.file_write_period_ms;
            return Ok((Some(file), named));
        }
        #[cfg(not(feature = "in-process"))]
        let _ = backend;
        config.flush_period_ms.get_or_insert(FILE_FLUSH_PERIOD_MS);
        // Without this, newer services flush every 5 s and ignore the period
        // (`docs/spec/service.md` §18).
        config.write_flush_mode.get_or_insert(WriteFlushMode::WRITE_FLUSH_DISABLED);
        config.file_write_period_ms.get_or_insert(FILE_WRITE_PERIOD_MS);
        Ok((Some(file), named))
    }
}
