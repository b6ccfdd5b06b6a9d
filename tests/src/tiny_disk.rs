//! A disk that is soon full.

use crate::Skip;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Size of a [`TinyDisk`].
pub const DISK_BYTES: u64 = 128 * 1024;

/// A separate file system, until the end of the test.
#[derive(Debug)]
pub struct TinyDisk(PathBuf);

impl TinyDisk {
    /// Mounts it at a new folder.
    ///
    /// # Errors
    ///
    /// This user may not mount.
    ///
    /// # Panics
    ///
    /// The folder exists.
    pub fn mount(at: PathBuf) -> Result<Self, Skip> {
        std::fs::create_dir(&at).expect("a new folder");
        let options = format!("size={DISK_BYTES}");
        let mut mount = Command::new("mount");
        let output = mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&at).output();
        match output {
            Ok(output) if output.status.success() => Ok(Self(at)),
            Ok(output) => Err(Skip(format!("no mount: {}", String::from_utf8_lossy(&output.stderr).trim()))),
            Err(error) => Err(Skip(format!("no mount: {error}"))),
        }
    }

    /// Its folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
