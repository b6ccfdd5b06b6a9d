//! Limits that a recording may meet: memory, disk space, descriptors.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, StatVfs, access, statvfs};
use rustix::process::{Resource, getrlimit};

use super::check::Check;

/// Memory for the buffers of a preset, and as much for programs.
const ENOUGH_MEMORY: u64 = 512 << 20;
/// Space for a trace of some minutes.
const ENOUGH_SPACE: u64 = 1 << 30;
/// Descriptors for a service with some hundred programs, which need four each.
const ENOUGH_DESCRIPTORS: u64 = 1024;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![memory()];
    let temporary = std::env::temp_dir();
    checks.push(folder("temporary-folder", &temporary));
    let current = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    if current != temporary {
        checks.push(folder("current-folder", &current));
    }
    checks.push(descriptors());
    checks
}

fn memory() -> Check {
    let info = rustix::system::sysinfo();
    #[expect(clippy::useless_conversion, reason = "narrower on other platforms")]
    let machine = u64::from(info.totalram) * u64::from(info.mem_unit);
    match esatto_daemon::memory_limit().filter(|&limit| limit < machine) {
        Some(limit) if limit < ENOUGH_MEMORY => Check::missing(
            "memory",
            format!("the control group may have {}, which is little for buffers", size(limit)),
            "raise it, for instance with `docker update --memory 1g CONTAINER` or `systemctl set-property UNIT MemoryMax=1G`",
        ),
        Some(limit) => Check::ready("memory", format!("the control group may have {}", size(limit))),
        None if machine < ENOUGH_MEMORY => {
            Check::note("memory", format!("the machine has {}, which is little for buffers", size(machine)))
                .remedy("use smaller buffers: `esatto config new --ring 16M`")
        }
        None => Check::ready(
            "memory",
            format!("the machine has {} of memory, and no control group limits it", size(machine)),
        ),
    }
}

/// Checks a folder for traces.
fn folder(id: &'static str, path: &Path) -> Check {
    let name = path.display();
    if std::fs::metadata(path).is_ok_and(|meta| meta.nlink() == 0) {
        let text = format!("{name} was deleted: no file can be made there");
        return Check::missing(id, text, "go to a folder that exists: `cd ~`");
    }
    if let Err(why) = access(path, Access::WRITE_OK | Access::EXEC_OK) {
        let text = format!("{name} cannot be written: {}", std::io::Error::from(why));
        return match id {
            "temporary-folder" => Check::missing(id, text, "set TMPDIR: `export TMPDIR=/var/tmp`"),
            _ => Check::note(id, text).remedy("write traces elsewhere: `cd ~`, or `-o FILE`"),
        };
    }
    let Ok(space) = statvfs(path) else { return Check::note(id, format!("the free space of {name} is unknown")) };
    let free = free_bytes(&space);
    if free < ENOUGH_SPACE {
        let remedy =
            format!("see what takes the space: `du -xh {name} | sort -h | tail`, or write elsewhere with `-o`");
        return Check::missing(id, format!("{name} has {} left, which is little for traces", size(free)), remedy);
    }
    Check::ready(id, format!("{name} can be written and has {} left", size(free)))
}

/// Returns the space that this user may fill.
fn free_bytes(space: &StatVfs) -> u64 {
    space.f_bavail.saturating_mul(space.f_frsize)
}

fn descriptors() -> Check {
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < ENOUGH_DESCRIPTORS => Check::missing(
            "descriptors",
            format!("a process may have {limit} descriptors: a service can serve {} programs", limit / 4),
            format!("run `ulimit -n {ENOUGH_DESCRIPTORS}`"),
        ),
        Some(limit) => Check::ready("descriptors", format!("a process may have {limit} descriptors")),
        None => Check::ready("descriptors", "a process may have any number of descriptors"),
    }
}

/// Returns an amount with its unit.
fn size(bytes: u64) -> String {
    match bytes {
        0..0x40_0000 => format!("{} KiB", bytes >> 10),
        0x40_0000..0x1_0000_0000 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_the_largest_unit_that_is_exact_enough() {
        assert_eq!(size(100 << 10), "100 KiB");
        assert_eq!(size(512 << 20), "512 MiB");
        assert_eq!(size((7 << 30) + 1), "7 GiB");
    }
}
