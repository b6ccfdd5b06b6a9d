//! Rights that data sources of the machine need.

use std::fs;
use std::path::Path;

use esatto_probes::{Probes, privileges};
use rustix::thread::CapabilitySet;

use super::check::{Check, State};
use crate::service_state::{Program, Programs};

/// Capabilities that data sources use, by the names of `setcap`.
const CAPABILITIES: [(&str, CapabilitySet); 4] = [
    ("cap_sys_ptrace", CapabilitySet::SYS_PTRACE),
    ("cap_dac_read_search", CapabilitySet::DAC_READ_SEARCH),
    ("cap_syslog", CapabilitySet::SYSLOG),
    ("cap_sys_nice", CapabilitySet::SYS_NICE),
];

/// Checks the rights of this user. With data sources that a running program offers, a recording
/// needs no rights of its own.
pub(super) fn checks(programs: Option<&Programs>) -> Vec<Check> {
    let ours = Probes::data_sources();
    let connected: Vec<&Program> = programs.map(|programs| programs.connected().collect()).unwrap_or_default();
    let is_offered =
        |name: &str| connected.iter().any(|program| program.sources.iter().any(|source| source.name == name));
    let mut checks = Vec::new();
    for program in &connected {
        let count = program.sources.iter().filter(|source| ours.contains(&source.name)).count();
        if count > 0 {
            let Program { name, pid, sdk, .. } = program;
            let sdk = if sdk.is_empty() { String::new() } else { format!(", {sdk}") };
            let text = format!("{name} (pid {pid}{sdk}) offers {count} data sources of the machine");
            checks.push(Check::ready("offered", text));
        }
    }
    let missing = privileges::missing();
    checks.extend(missing.iter().map(|missing| {
        let text = format!("{} cannot record {}: {}", missing.data_source, missing.what, missing.why);
        let check = Check::missing("right", text, &missing.remedy);
        // That program has the rights, or says in the trace that it has not.
        if is_offered(missing.data_source) { Check { state: State::Note, ..check } } else { check }
    }));
    if !missing.iter().any(|missing| missing.is_everything && missing.data_source == "linux.ftrace") {
        checks.push(Check::ready("tracefs", "tracefs is mounted, and can be read and written"));
    }
    if missing.is_empty() {
        checks.push(Check::ready("rights", "you have all rights that data sources of the machine need"));
    }
    checks.extend(capabilities());
    checks.extend(capabilities_of_file());
    checks.extend(level("perf_event_paranoid", PERF_LEVELS));
    checks.extend(level("kptr_restrict", POINTER_LEVELS));
    checks.extend(privileges::hidden_by_container().into_iter().map(|hidden| match hidden.split_once("; ") {
        Some((what, remedy)) => Check::note("container", format!("this container hides {what}")).remedy(remedy),
        None => Check::note("container", format!("this container hides {hidden}")),
    }));
    checks
}

fn capabilities() -> Option<Check> {
    let effective = rustix::thread::capabilities(None).ok()?.effective;
    let (had, lacking): (Vec<_>, Vec<_>) = CAPABILITIES.iter().partition(|(_, set)| effective.contains(*set));
    let names = |list: &[&(&str, CapabilitySet)]| list.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    Some(match (&had[..], &lacking[..]) {
        (had, []) => Check::ready("capabilities", format!("this command has {}", names(had))),
        ([], lacking) => Check::note("capabilities", format!("this command has none of {}", names(lacking))),
        (had, lacking) => {
            Check::note("capabilities", format!("this command has {}, but not {}", names(had), names(lacking)))
        }
    })
}

/// Warns if the file of this program has capabilities: they are those of every user who may run it.
fn capabilities_of_file() -> Option<Check> {
    let path = std::env::current_exe().ok()?;
    let mut value = [0_u8; 64];
    rustix::fs::getxattr(&path, "security.capability", &mut value).ok()?;
    let path = esatto_trace::escape::Line(path.display());
    let text =
        format!("{path} has capabilities: each user who may run it acts with them, also on the files that he names");
    Some(Check::missing("file_capabilities", text, format!("run `sudo setcap -r {path}`")))
}

/// Meanings of `kernel.perf_event_paranoid`, for values up to the given one.
const PERF_LEVELS: &[(i32, &str)] = &[
    (-1, "all users may sample all programs"),
    (0, "all users may sample all programs, without raw tracepoints"),
    (1, "users may sample their own programs, with the kernel's part"),
    (2, "users may sample their own programs, without the kernel's part"),
    (i32::MAX, "only root may sample programs"),
];

/// The same for `kernel.kptr_restrict`.
const POINTER_LEVELS: &[(i32, &str)] = &[
    (0, "addresses of the kernel are visible to users who may sample it"),
    (1, "addresses of the kernel are visible with CAP_SYSLOG"),
    (i32::MAX, "addresses of the kernel are visible to nobody, so its functions have no names"),
];

/// Describes a level of the kernel. If it takes something away, that is one of the missing rights.
fn level(name: &'static str, meanings: &[(i32, &str)]) -> Option<Check> {
    let value: i32 = fs::read_to_string(Path::new("/proc/sys/kernel").join(name)).ok()?.trim().parse().ok()?;
    let (_, meaning) = meanings.iter().find(|(upto, _)| value <= *upto)?;
    Some(Check::ready(name, format!("kernel.{name} is {value}: {meaning}")))
}
