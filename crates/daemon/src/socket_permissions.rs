//! Group and mode of the socket files, which decide who may connect (`docs/spec/wire-protocol.md`
//! §1, `cli.md` §17).

use std::fs::Permissions;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::str::FromStr;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags};
use thiserror::Error;

/// Group and mode of the producer sockets and of the consumer socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketPermissions {
    /// Access to each producer socket.
    pub producer: Access,
    /// Access to the consumer socket.
    pub consumer: Access,
}

/// Group and mode of one socket file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Group id.
    pub gid: u32,
    /// Mode bits, at most 0o7777.
    pub mode: u32,
}

/// Reason why a text does not describe socket permissions.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PermissionsError {
    /// The text does not have four parts.
    #[error("{0:?} is not of the form PGROUP:PMODE:CGROUP:CMODE, as in perfetto:0666:perfetto:0660")]
    Form(String),
    /// The text does not have two parts.
    #[error("{0:?} is not of the form GROUP:MODE, as in perfetto:0666")]
    FormOfOne(String),
    /// The group is not a known name, and not a number.
    #[error("there is no group {0:?}")]
    Group(String),
    /// The mode is not four octal digits.
    #[error("{0:?} is not a mode of four octal digits, as in 0660")]
    Mode(String),
}

impl FromStr for SocketPermissions {
    type Err = PermissionsError;

    fn from_str(text: &str) -> Result<Self, PermissionsError> {
        let parts: Vec<&str> = text.split(':').collect();
        let [pgroup, pmode, cgroup, cmode] = parts[..] else {
            return Err(PermissionsError::Form(text.to_owned()));
        };
        if parts.iter().any(|part| part.is_empty()) {
            return Err(PermissionsError::Form(text.to_owned()));
        }
        Ok(Self {
            producer: Access { gid: gid_of(pgroup)?, mode: mode_of(pmode)? },
            consumer: Access { gid: gid_of(cgroup)?, mode: mode_of(cmode)? },
        })
    }
}

impl FromStr for Access {
    type Err = PermissionsError;

    fn from_str(text: &str) -> Result<Self, PermissionsError> {
        match text.split_once(':') {
            Some((group, mode)) if !group.is_empty() && !mode.is_empty() && !mode.contains(':') => {
                Ok(Self { gid: gid_of(group)?, mode: mode_of(mode)? })
            }
            _ => Err(PermissionsError::FormOfOne(text.to_owned())),
        }
    }
}

impl Access {
    /// Gives the socket file this group and mode. Its owner is the effective user already.
    ///
    /// Follows no link, and changes only a socket of this user that has no other name. If others
    /// can write to the folder, they may have put another file in its place.
    pub(crate) fn apply(self, path: &Path) -> io::Result<()> {
        let file = rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        let is_socket = FileType::from_raw_mode(stat.st_mode) == FileType::Socket;
        if !is_socket || stat.st_nlink != 1 || stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other(
                "another file has taken its place; only its owner may be able to write to the folder",
            ));
        }
        rustix::fs::chownat(&file, "", None, Some(Gid::from_raw(self.gid)), AtFlags::EMPTY_PATH)?;
        // No other call reaches the mode of a file that is not opened for reading or writing;
        // `fchmodat2` is too new.
        let opened = format!("/proc/self/fd/{}", file.as_raw_fd());
        std::fs::set_permissions(opened, Permissions::from_mode(self.mode))
    }
}

fn gid_of(group: &str) -> Result<u32, PermissionsError> {
    if let Ok(gid) = group.parse() {
        return Ok(gid);
    }
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    groups
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(':');
            (fields.next()? == group).then(|| fields.nth(1)?.parse().ok())?
        })
        .next()
        .ok_or_else(|| PermissionsError::Group(group.to_owned()))
}

fn mode_of(mode: &str) -> Result<u32, PermissionsError> {
    let octal = mode.len() == 4 && mode.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
    let parsed = u32::from_str_radix(mode, 8).ok().filter(|_| octal);
    parsed.ok_or_else(|| PermissionsError::Mode(mode.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_socket_of_this_user_is_changed() {
        let folder = std::env::temp_dir().join(format!("esatto-access-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let mode = |name: &str| std::fs::symlink_metadata(folder.join(name)).unwrap().permissions().mode() & 0o7777;
        let access = Access { gid: rustix::process::getegid().as_raw(), mode: 0o621 };
        let _listener = std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap();
        access.apply(&folder.join("socket")).unwrap();
        assert_eq!(mode("socket"), 0o621);
        std::fs::write(folder.join("file"), b"").unwrap();
        std::fs::set_permissions(folder.join("file"), Permissions::from_mode(0o600)).unwrap();
        for (original, link) in [("file", "link"), ("socket", "link to a socket")] {
            std::os::unix::fs::symlink(folder.join(original), folder.join(link)).unwrap();
        }
        let other = Access { mode: 0o666, ..access };
        for name in ["file", "link", "link to a socket", "nothing"] {
            assert!(other.apply(&folder.join(name)).is_err(), "{name}");
        }
        // Another process may own it under its other name.
        std::fs::hard_link(folder.join("socket"), folder.join("hard link")).unwrap();
        assert!(other.apply(&folder.join("socket")).is_err());
        assert_eq!((mode("file"), mode("socket")), (0o600, 0o621));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn groups_are_names_or_numbers_and_modes_four_octal_digits() {
        let parsed: SocketPermissions = "root:0666:12:0660".parse().unwrap();
        assert_eq!(parsed.producer, Access { gid: 0, mode: 0o666 });
        assert_eq!(parsed.consumer, Access { gid: 12, mode: 0o660 });
        assert_eq!("root:0640".parse(), Ok(Access { gid: 0, mode: 0o640 }));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| text.parse::<SocketPermissions>().unwrap_err();
        assert!(matches!(error("root:0666"), PermissionsError::Form(_)));
        assert!(matches!(error("root:0666::0660"), PermissionsError::Form(_)));
        for one in ["root", ":0660", "root:", "root:0660:x"] {
            assert_eq!(one.parse::<Access>(), Err(PermissionsError::FormOfOne(one.to_owned())));
        }
        assert_eq!(error("nosuchgroup:0666:0:0660"), PermissionsError::Group("nosuchgroup".to_owned()));
        for mode in ["666", "06666", "0668", "+666"] {
            assert_eq!(error(&format!("0:{mode}:0:0660")), PermissionsError::Mode(mode.to_owned()));
        }
    }
}
