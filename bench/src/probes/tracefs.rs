//! [`TracefsInstance`]: ring buffers of the bench's own.

use std::path::PathBuf;

/// Place of tracefs.
const MOUNT_POINT: &str = "/sys/kernel/tracing";

/// A tracefs instance. The kernel removes it with this value.
#[derive(Debug)]
pub(super) struct TracefsInstance {
    name: String,
    folder: PathBuf,
}

impl TracefsInstance {
    pub(super) fn make() -> Result<Self, String> {
        let name = format!("esatto-bench-{}", std::process::id());
        let folder = PathBuf::from(MOUNT_POINT).join("instances").join(&name);
        let made = std::fs::create_dir(&folder);
        made.map_err(|error| {
            let mount = format!("mount -t tracefs nodev {MOUNT_POINT}");
            format!("cannot make {}: {error}; run as root, with a tracefs (`{mount}`)", folder.display())
        })?;
        Ok(Self { name, folder })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for TracefsInstance {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir(&self.folder) {
            eprintln!("bench: cannot remove {}: {error}", self.folder.display());
        }
    }
}
