//! Tracing service of this process, on sockets in a folder that only this user may enter.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use esatto_daemon::{Daemon, DaemonHandle, Options};
use esatto_ipc::address::{Address, CONSUMER_SOCK_NAME, PRODUCER_SOCK_NAME};

use crate::failure::{Attempt as _, Failure};

/// A service in this process. When dropped, it ends and removes its sockets.
#[derive(Debug)]
pub(crate) struct PrivateService {
    // Dropped in this order: the service first, then its folder.
    _daemon: DaemonHandle,
    producer: Address,
    consumer: Address,
    _folder: Folder,
}

impl PrivateService {
    pub(crate) fn start() -> Result<Self, Failure> {
        let folder = Folder::create().map_err(|why| {
            Failure::new("cannot make a folder for private sockets in /tmp", why)
                .hint("make /tmp writable, or name another folder in XDG_RUNTIME_DIR or TMPDIR")
        })?;
        let producer = Address::Path(folder.path().join("producer"));
        let consumer = Address::Path(folder.path().join("consumer"));
        let mut options = Options::new(producer.clone(), consumer.clone());
        options.shared_memory_bytes = SHARED_MEMORY_BYTES;
        let daemon = Daemon::bind(options)
            .and_then(Daemon::spawn_thread)
            .attempt(|| "cannot start the tracing service".to_owned())?;
        Ok(Self { _daemon: daemon, producer, consumer, _folder: folder })
    }

    pub(crate) fn consumer(&self) -> &Address {
        &self.consumer
    }

    pub(crate) fn producer(&self) -> &Address {
        &self.producer
    }

    /// Sets the environment of a program that is about to start, so that it finds this service.
    pub(crate) fn announce_to(&self, command: &mut Command) {
        command.env(PRODUCER_SOCK_NAME, self.producer.to_os_string());
        command.env(CONSUMER_SOCK_NAME, self.consumer.to_os_string());
    }
}

/// Memory that each program shares with the service. Each thread that traces holds 4 KiB, so it is
/// enough for a thousand threads. The service of a machine, with its many programs, gives 256 KiB.
const SHARED_MEMORY_BYTES: usize = 4 << 20;

/// Longest path of a folder in which the folder is made: that of a socket may have 106 bytes.
const LONGEST_PLACE: usize = 64;

/// A new folder with mode 0700. When dropped, it is removed with all its content.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn create() -> io::Result<Self> {
        let mut random = [0; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let name = format!("esatto-{:016x}", u64::from_ne_bytes(random));
        // This fails if the folder exists, so no other user can have put something into it.
        let make = |place: PathBuf| {
            let path = place.join(&name);
            fs::DirBuilder::new().mode(0o700).create(&path).map(|()| Self(path))
        };
        make(PathBuf::from("/tmp")).or_else(|error| {
            let others = ["XDG_RUNTIME_DIR", "TMPDIR"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
            let fits = |place: &PathBuf| place.is_absolute() && place.as_os_str().len() <= LONGEST_PLACE;
            others.filter(fits).find_map(|place| make(place).ok()).ok_or(error)
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Best effort: an empty folder in /tmp does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_folder_is_private_and_goes_away() {
        let folder = Folder::create().unwrap();
        let path = folder.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(path.join("left over"), "x").unwrap();
        drop(folder);
        assert!(!path.exists());
    }
}
