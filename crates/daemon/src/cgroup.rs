//! Memory limit of the control groups of this process.
//!
//! A container or a systemd unit may have much less memory than the machine, and the kernel kills
//! processes that take more. The limits of all groups up to the root apply, so the smallest one
//! counts.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns how many bytes this process and the other processes in its groups may have together;
/// `None` without a limit.
#[must_use]
pub fn memory_limit() -> Option<u64> {
    memory_limit_below(Path::new("/"))
}

/// Returns the same for files below another root.
fn memory_limit_below(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let mounts: Vec<Mount<'_>> = mounts.lines().filter_map(Mount::parse).collect();
    let limits = groups.lines().filter_map(|line| {
        // A line holds the number of the hierarchy, its controllers, and the path of the group in
        // it.
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let is_version_2 = controllers.is_empty();
        if !is_version_2 && controllers.split(',').all(|controller| controller != "memory") {
            return None;
        }
        let mount = mounts.iter().find(|mount| mount.has_memory && mount.is_version_2 == is_version_2)?;
        smallest(root, mount, path)
    });
    limits.min()
}

/// A file system with control groups.
#[derive(Debug)]
struct Mount<'m> {
    /// The group that is mounted at `point`.
    group: &'m str,
    point: &'m str,
    is_version_2: bool,
    has_memory: bool,
}

impl<'m> Mount<'m> {
    /// Parses a line of `mountinfo`; `None` if it describes something else.
    fn parse(line: &'m str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (group, point) = (left.next()?, left.next()?);
        let mut right = right.split(' ');
        let is_version_2 = match right.next()? {
            "cgroup2" => true,
            "cgroup" => false,
            _ => return None,
        };
        let options = right.nth(1).unwrap_or_default();
        let has_memory = is_version_2 || options.split(',').any(|option| option == "memory");
        Some(Self { group, point, is_version_2, has_memory })
    }
}

/// Returns the smallest limit of a group and the visible groups above it.
fn smallest(root: &Path, mount: &Mount<'_>, group: &str) -> Option<u64> {
    let name = if mount.is_version_2 { "memory.max" } else { "memory.limit_in_bytes" };
    let top = root.join(mount.point.trim_start_matches('/'));
    // An invisible group is inside the visible one.
    let below = Path::new(group).strip_prefix(mount.group).unwrap_or_else(|_| Path::new(""));
    let mut folder: PathBuf = top.join(below);
    let mut smallest = None;
    while folder.starts_with(&top) {
        // `max` is not a number. The root of version 2 has no such file.
        let text = fs::read_to_string(folder.join(name)).unwrap_or_default();
        smallest = [smallest, text.trim().parse().ok()].into_iter().flatten().min();
        if !folder.pop() {
            break;
        }
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Returns the limit that these files set.
    fn limit(files: &[(&str, &str)]) -> Option<u64> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("esatto-cgroup-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let root = std::env::temp_dir().join(name);
        for (path, content) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let limit = memory_limit_below(&root);
        let _ = fs::remove_dir_all(&root);
        limit
    }

    const VERSION_2: (&str, &str) = (
        "proc/self/mountinfo",
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
         35 22 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
    );

    #[test]
    fn the_smallest_limit_up_to_the_root_counts() {
        let group = ("proc/self/cgroup", "0::/a.slice/b.service\n");
        let limits = |of_a, of_b| {
            limit(&[
                VERSION_2,
                group,
                ("sys/fs/cgroup/a.slice/memory.max", of_a),
                ("sys/fs/cgroup/a.slice/b.service/memory.max", of_b),
                // The limits of other groups do not count.
                ("sys/fs/cgroup/a.slice/c.service/memory.max", "5\n"),
                ("sys/memory.max", "6\n"),
            ])
        };
        assert_eq!(limits("max\n", "max\n"), None);
        assert_eq!(limits("max\n", "1048576\n"), Some(1 << 20));
        assert_eq!(limits("1048576\n", "max\n"), Some(1 << 20));
        assert_eq!(limits("1048576\n", "2097152\n"), Some(1 << 20));
    }

    #[test]
    fn a_container_sees_its_group_as_the_root() {
        let max = ("sys/fs/cgroup/memory.max", "4096\n");
        assert_eq!(limit(&[VERSION_2, ("proc/self/cgroup", "0::/\n"), max]), Some(4096));
        let mounted = ("proc/self/mountinfo", "35 22 0:30 /pod/c1 /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
        assert_eq!(limit(&[mounted, ("proc/self/cgroup", "0::/pod/c1\n"), max]), Some(4096));
        let inner = ("sys/fs/cgroup/inner/memory.max", "1024\n");
        assert_eq!(limit(&[mounted, ("proc/self/cgroup", "0::/pod/c1/inner\n"), max, inner]), Some(1024));
        assert_eq!(limit(&[mounted, ("proc/self/cgroup", "0::/../elsewhere\n"), max]), Some(4096));
    }

    #[test]
    fn version_1_has_a_hierarchy_for_memory() {
        let mounts = (
            "proc/self/mountinfo",
            "30 22 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
             31 22 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
             32 22 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
        );
        let groups = ("proc/self/cgroup", "5:cpu,cpuacct:/c\n4:memory:/m\n0::/u\n");
        let none = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        let own = ("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "8192\n");
        let cpu = ("sys/fs/cgroup/cpu/c/memory.limit_in_bytes", "1\n");
        assert_eq!(limit(&[mounts, groups, none, own, cpu]), Some(8192));
        assert_eq!(limit(&[mounts, groups]), None);
    }

    #[test]
    fn without_control_groups_there_is_no_limit() {
        assert_eq!(limit(&[("proc/self/mountinfo", "nonsense\n - cgroup2\n")]), None);
        assert_eq!(limit(&[VERSION_2, ("proc/self/cgroup", "0\n::\n\n1:memory\n")]), None);
    }
}
