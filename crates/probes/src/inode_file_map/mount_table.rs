//! [`MountTable`]: which folders show the files of which device.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::{ffi::OsString, fs::File, os::unix::ffi::OsStringExt as _};

/// Mounts of the machine.
#[derive(Debug, Default)]
pub(crate) struct MountTable {
    mounts: Vec<Mount>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Device in the encoding of user space.
    pub(crate) device: u64,
    pub(crate) point: PathBuf,
    /// The mount shows the whole file system, not one of its folders.
    pub(crate) is_whole: bool,
}

/// Bytes of the table that are read. A machine with many containers has some thousand mounts.
const MAX_TABLE_BYTES: u64 = 4 << 20;

impl MountTable {
    /// Reads the table from a file such as `/proc/self/mountinfo`.
    pub(crate) fn read(path: &Path) -> std::io::Result<Self> {
        let mut text = Vec::new();
        File::open(path)?.take(MAX_TABLE_BYTES).read_to_end(&mut text)?;
        Ok(Self::parse(&text))
    }

    /// Parses lines of `mountinfo`. Damaged lines are left out.
    pub(crate) fn parse(text: &[u8]) -> Self {
        Self { mounts: text.split(|&byte| byte == b'\n').filter_map(parse_line).collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.mounts.len()
    }

    /// Returns the mounts of a device in the order of the table.
    pub(crate) fn of_device(&self, device: u64) -> impl Iterator<Item = &Mount> {
        self.mounts.iter().filter(move |mount| mount.device == device)
    }

    pub(crate) fn has_device(&self, device: u64) -> bool {
        self.of_device(device).next().is_some()
    }
}

/// Parses `36 35 98:0 /root /mount/point options …`.
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|&byte| byte == b' ').skip(2);
    let (device, root, point) = (words.next()?, words.next()?, words.next()?);
    let colon = device.iter().position(|&byte| byte == b':')?;
    let number = |digits: &[u8]| core::str::from_utf8(digits).ok()?.parse::<u32>().ok();
    let device = rustix::fs::makedev(number(&device[..colon])?, number(&device[colon + 1..])?);
    let point = PathBuf::from(OsString::from_vec(unescape(point)));
    Some(Mount { device, point, is_whole: root == b"/" })
}

/// Replaces `\040` and the like, which stand for spaces and other separators.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after.first_chunk::<3>().filter(|_| byte == b'\\');
        let octal =
            octal.filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)) && digits[0] <= b'3');
        match octal {
            Some(digits) => {
                plain.push(digits.iter().fold(0, |value, digit| value * 8 + (digit - b'0')));
                rest = &after[3..];
            }
            None => {
                plain.push(byte);
                rest = after;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_found_by_their_device() {
        let table = MountTable::parse(
            b"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
              nonsense\n\
              30 22 0:25 / /mnt/with\\040space\\134 rw - tmpfs tmpfs rw\n\
              31 22 254:0 /var/data /srv rw - ext4 /dev/vda rw\n\
              32 22 254 / /no-device rw - x x rw",
        );
        let device = rustix::fs::makedev(254, 0);
        let mounts: Vec<_> = table.of_device(device).map(|mount| (mount.point.to_str(), mount.is_whole)).collect();
        assert_eq!(mounts, [(Some("/"), true), (Some("/srv"), false)]);
        let other: Vec<_> = table.of_device(rustix::fs::makedev(0, 25)).map(|mount| mount.point.to_str()).collect();
        assert_eq!(other, [Some("/mnt/with space\\")]);
        assert!(!table.has_device(1));
    }
}
