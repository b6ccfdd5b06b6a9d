//! Rights that the data sources need, and what to do if one is missing.
//!
//! | data source | right |
//! |---|---|
//! | `linux.ftrace`, `linux.frozen_ftrace` | reading and writing tracefs: root, or the owner of its files. A lockdown of the kernel forbids it to all |
//! | `linux.ftrace` with `symbolize_ksyms` | addresses in `/proc/kallsyms`: `kptr_restrict` 0 with `perf_event_paranoid` at most 1, or `CAP_SYSLOG` with `kptr_restrict` at most 1 |
//! | `linux.process_stats` | names of all processes: `/proc` without `hidepid`; descriptors and smaps of other users' processes: `CAP_SYS_PTRACE` |
//! | `linux.sys_stats` | `/proc/slabinfo`: root or `CAP_DAC_READ_SEARCH`; the rest: none |
//! | `linux.systemd_journald` | the group `systemd-journal`, or `CAP_DAC_READ_SEARCH` |
//! | `linux.inode_file_map` | folders of other users: `CAP_DAC_READ_SEARCH` |
//! | `priority_boost` of a config | `CAP_SYS_NICE` |
//!
//! None needs `CAP_PERFMON`: it replaces `CAP_SYS_ADMIN` for the calls of `linux.perf`, and neither
//! tracefs nor `/proc` asks for it.
//!
//! [`missing`] looks for them. `drop_unneeded` gives the others back.

mod container;
mod given_up;
#[cfg(test)]
mod tests;

use core::fmt;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

use esatto_schema::DataSourceConfigReader;
use rustix::thread::CapabilitySet;

pub use self::container::hidden_by_container;
pub(crate) use self::given_up::drop_unneeded;

/// A right that this process does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// The data source that records less.
    pub data_source: &'static str,
    /// The data that it does not record.
    pub what: &'static str,
    /// The reason.
    pub why: String,
    /// Remedy; often a command.
    pub remedy: String,
    /// True if the data source records nothing at all.
    pub is_everything: bool,
    right: Right,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    Tracefs,
    Symbols,
    Processes,
    ForeignProcesses,
    Slabs,
    Journal,
}

impl Missing {
    /// Returns whether an instance with this config, an encoded `DataSourceConfig`, records less.
    #[must_use]
    pub fn concerns(&self, config: &[u8]) -> bool {
        let config = DataSourceConfigReader::new(config);
        if config.name() != Some(self.data_source.as_bytes()) {
            return false;
        }
        match self.right {
            Right::Tracefs | Right::Processes | Right::Journal => true,
            Right::Symbols => config.ftrace_config().is_some_and(|config| config.symbolize_ksyms() == Some(true)),
            Right::ForeignProcesses => config
                .process_stats_config()
                .is_some_and(|config| [config.resolve_process_fds(), config.scan_smaps_rollup()].contains(&Some(true))),
            Right::Slabs => {
                config.sys_stats_config().is_some_and(|config| config.slab_period_ms().is_some_and(|ms| ms > 0))
            }
        }
    }
}

/// Shows one line.
impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot record {}: {}; {}", self.data_source, self.what, self.why, self.remedy)
    }
}

/// Returns the rights that this process misses, in the order of their importance. Reads a few files
/// of the kernel.
#[must_use]
pub fn missing() -> Vec<Missing> {
    Machine::this().missing()
}

/// Folders in which tracefs may be mounted (`docs/spec/probes.md` §3).
const TRACEFS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];
/// Where journald keeps the journal, on disk or in memory.
const JOURNALS: [&str; 2] = ["var/log/journal", "run/log/journal"];

/// The machine as this process may use it.
struct Machine {
    root: PathBuf,
    capabilities: CapabilitySet,
    open: fn(&Path, Access) -> io::Result<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Reading,
    Writing,
}

fn open(path: &Path, access: Access) -> io::Result<()> {
    let mut options = OpenOptions::new();
    match access {
        Access::Reading => options.read(true),
        Access::Writing => options.write(true),
    };
    options.open(path).map(drop)
}

impl Machine {
    fn this() -> Self {
        let capabilities = rustix::thread::capabilities(None).map(|sets| sets.effective);
        Self { root: "/".into(), capabilities: capabilities.unwrap_or(CapabilitySet::empty()), open }
    }

    fn missing(&self) -> Vec<Missing> {
        let all =
            [self.tracefs(), self.processes(), self.foreign_processes(), self.symbols(), self.slabs(), self.journal()];
        all.into_iter().flatten().collect()
    }

    fn can(&self, capability: CapabilitySet) -> bool {
        self.capabilities.contains(capability)
    }

    fn try_open(&self, path: &str, access: Access) -> io::Result<()> {
        (self.open)(&self.root.join(path), access)
    }

    fn number(&self, path: &str) -> Option<i32> {
        std::fs::read_to_string(self.root.join(path)).ok()?.trim().parse().ok()
    }

    fn tracefs(&self) -> Option<Missing> {
        let mounted = TRACEFS.into_iter().find_map(|mount| {
            // Without a right to enter the folder, the file is not found by its name.
            let result = self.try_open(&format!("{mount}/trace"), Access::Reading);
            result
                .as_ref()
                .map_or_else(|why| why.kind() != io::ErrorKind::NotFound, |()| true)
                .then_some((mount, result))
        });
        let (why, remedy) = match mounted {
            None if self.is_locked_down() => self.lockdown(),
            None => {
                let why = match container::is_container(&self.root) {
                    true => "tracefs is not mounted in this container",
                    false => "tracefs is not mounted",
                };
                (
                    why.to_owned(),
                    "run `sudo mount -t tracefs tracefs /sys/kernel/tracing`, outside of containers".to_owned(),
                )
            }
            Some((_, Err(_))) if self.is_locked_down() => self.lockdown(),
            Some((mount, read)) => {
                let why = read.and_then(|()| self.try_open(&format!("{mount}/tracing_on"), Access::Writing)).err()?;
                let advice = match why.kind() {
                    io::ErrorKind::ReadOnlyFilesystem => format!("run `sudo mount -o remount,rw /{mount}`"),
                    _ => format!("run as root, or run `sudo chown -R $USER /{mount}`"),
                };
                (format!("/{mount} cannot be used: {why}"), advice)
            }
        };
        Some(Missing {
            data_source: "linux.ftrace",
            what: "scheduling and other events of the kernel",
            right: Right::Tracefs,
            why,
            remedy,
            is_everything: true,
        })
    }

    /// Returns whether the kernel hides its memory even from root.
    fn is_locked_down(&self) -> bool {
        let lockdown = std::fs::read_to_string(self.root.join("sys/kernel/security/lockdown"));
        lockdown.is_ok_and(|text| text.contains("[confidentiality]"))
    }

    fn lockdown(&self) -> (String, String) {
        let why = "the kernel is locked down for confidentiality";
        (why.to_owned(), "boot without lockdown=confidentiality".to_owned())
    }

    fn processes(&self) -> Option<Missing> {
        // Process 1 is always there. With hidepid its folder seems not to be, or cannot be read.
        let why = self.try_open("proc/1/status", Access::Reading).err()?;
        Some(Missing {
            data_source: "linux.process_stats",
            what: "processes of other users",
            right: Right::Processes,
            why: format!("/proc is mounted with hidepid ({why})"),
            remedy: "run as root, or run `sudo mount -o remount,hidepid=0 /proc`".to_owned(),
            is_everything: false,
        })
    }

    fn foreign_processes(&self) -> Option<Missing> {
        (!self.can(CapabilitySet::SYS_PTRACE)).then(|| Missing {
            data_source: "linux.process_stats",
            what: "file descriptors and smaps of other users' processes",
            right: Right::ForeignProcesses,
            why: "CAP_SYS_PTRACE is missing".to_owned(),
            // A capability of the program's file would be one of every user who may run it, and
            // would open every file to its options.
            remedy: "run as root, or let the service traced-probes record it".to_owned(),
            is_everything: false,
        })
    }

    fn symbols(&self) -> Option<Missing> {
        let restrict = self.number("proc/sys/kernel/kptr_restrict").unwrap_or(0);
        let paranoid = self.number("proc/sys/kernel/perf_event_paranoid").unwrap_or(2);
        let (why, remedy) = match (restrict, self.can(CapabilitySet::SYSLOG)) {
            (0 | 1, true) => return None,
            (0, false) if paranoid <= 1 => return None,
            (0, false) => (
                format!("kernel.perf_event_paranoid is {paranoid} and CAP_SYSLOG is missing"),
                "run as root, or run `sudo sysctl kernel.perf_event_paranoid=1`",
            ),
            (1, false) => ("kernel.kptr_restrict is 1 and CAP_SYSLOG is missing".to_owned(), "run as root"),
            (other, _) => (format!("kernel.kptr_restrict is {other}"), "run `sudo sysctl kernel.kptr_restrict=1`"),
        };
        Some(Missing {
            data_source: "linux.ftrace",
            what: "names of kernel functions",
            right: Right::Symbols,
            why,
            remedy: remedy.to_owned(),
            is_everything: false,
        })
    }

    fn slabs(&self) -> Option<Missing> {
        let why = self.try_open("proc/slabinfo", Access::Reading).err()?;
        // Kernels without slabs have no such file.
        (why.kind() == io::ErrorKind::PermissionDenied).then(|| Missing {
            data_source: "linux.sys_stats",
            what: "slabs",
            right: Right::Slabs,
            why: format!("/proc/slabinfo cannot be read: {why}"),
            remedy: "run as root".to_owned(),
            is_everything: false,
        })
    }

    fn journal(&self) -> Option<Missing> {
        let machine_id = std::fs::read_to_string(self.root.join("etc/machine-id")).ok()?;
        let system = |folder| format!("{folder}/{}/system.journal", machine_id.trim());
        let why = JOURNALS.into_iter().find_map(|folder| {
            let error = self.try_open(&system(folder), Access::Reading).err()?;
            (error.kind() == io::ErrorKind::PermissionDenied).then_some(error)
        })?;
        Some(Missing {
            data_source: "linux.systemd_journald",
            what: "the journal of the system",
            right: Right::Journal,
            why: format!("its files cannot be read: {why}"),
            remedy: "run as root, or run `sudo usermod -aG systemd-journal $USER` and log in again".to_owned(),
            is_everything: true,
        })
    }
}
