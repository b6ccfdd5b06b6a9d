//! [`InstanceLock`]: one daemon at a time records into a tracefs instance.
//!
//! The kernel gives each event of a ring buffer to one reader only. If two daemons read the same
//! instance, each would get a part of the events without noticing, and the one that ends first
//! would switch off events that the other one needs.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{FlockOperation, flock, major, minor};
use rustix::io::Errno;

use super::tracefs::{Tracefs, shown};

/// File of an instance that carries the lock. It exists in all kernels.
const LOCKED_FILE: &str = "tracing_on";

/// The right to record into an instance. It ends when this value is dropped, and with the process.
#[derive(Debug)]
pub(crate) struct InstanceLock(#[expect(dead_code, reason = "it is locked as long as it is open")] File);

impl InstanceLock {
    /// Takes the lock. Returns `None` if this kernel cannot lock such files.
    ///
    /// # Errors
    ///
    /// Another process has it: the text names the process, and tells what to do.
    pub(crate) fn take(tracefs: &Tracefs) -> Result<Option<Self>, String> {
        let Ok(file) = File::open(tracefs.path(LOCKED_FILE)) else { return Ok(None) };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(Errno::WOULDBLOCK) => {
                let holder = holder(&file).map(|holder| format!(" ({holder})")).unwrap_or_default();
                Err(format!(
                    "{} is in use by another recorder of kernel events{holder}, and each event goes to one of them \
                     only; record with the service of that one, or name another tracefs instance (instance_name)",
                    tracefs.path("").display()
                ))
            }
            Err(why) => {
                log::debug!("cannot lock {}: {why}", tracefs.path(LOCKED_FILE).display());
                Ok(None)
            }
        }
    }
}

/// Returns the process that has locked a file, in words.
fn holder(file: &File) -> Option<String> {
    let meta = file.metadata().ok()?;
    let pid = holder_in(&std::fs::read_to_string("/proc/locks").ok()?, meta.dev(), meta.ino())?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(format!("process {pid}, `{}`", shown(name.trim_end())))
}

/// Finds the process that has locked a file in the text of `/proc/locks`.
fn holder_in(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let wanted = format!("{:02x}:{:02x}:{inode}", major(device), minor(device));
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let is_flock = words.next() == Some("FLOCK");
        let pid = words.nth(2)?;
        (is_flock && words.next() == Some(&wanted)).then(|| pid.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftrace::tests::TestFolder;

    #[test]
    fn the_second_is_refused_until_the_first_ends() {
        let folder = TestFolder::new("instance-lock");
        folder.write("tracing_on", "1");
        let tracefs = Tracefs::at(folder.path().to_owned());
        let first = InstanceLock::take(&tracefs).unwrap();
        assert!(first.is_some());
        let refusal = InstanceLock::take(&tracefs).unwrap_err();
        assert!(refusal.contains("is in use by another recorder of kernel events"), "{refusal}");
        drop(first);
        assert!(InstanceLock::take(&tracefs).unwrap().is_some());
    }

    #[test]
    fn the_holder_is_found_by_device_and_inode() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 00:0d:1056 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 12907 fe:00:5644483 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 13085 00:0d:1056 0 EOF\n";
        assert_eq!(holder_in(locks, 13, 1056), Some(13085));
        assert_eq!(holder_in(locks, 13, 1), None);
    }
}
