//! Identity of this machine, as relays report it (`docs/spec/wire-protocol.md` §16).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use esatto_schema::{SystemInfo, Utsname};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::system::uname;

use crate::system_facts;

/// Environment variable with a hint that replaces the boot id, for machines that share one:
/// containers, network namespaces.
pub(crate) const MACHINE_ID_HINT: &str = "ESATTO_MACHINE_ID_HINT";

/// File with an id that changes with every boot and differs between machines.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Returns the hint from which the service makes the machine's id: that of the environment, else
/// the boot id, else a similar number.
pub(crate) fn id_hint() -> Vec<u8> {
    let set = std::env::var_os(MACHINE_ID_HINT).filter(|hint| !hint.is_empty());
    match set.map(|hint| hint.as_bytes().to_vec()).or_else(|| std::fs::read(BOOT_ID).ok()) {
        Some(mut hint) => {
            if hint.last() == Some(&b'\n') {
                hint.pop();
            }
            hint
        }
        None => pseudo_boot_id().into_bytes(),
    }
}

/// Returns a hash of the creation time of `/dev` and of the kernel's names.
fn pseudo_boot_id() -> String {
    let birth = statx(CWD, OsStr::new("/dev"), AtFlags::empty(), StatxFlags::BTIME).map(|stat| stat.stx_btime);
    let (seconds, nanoseconds) = birth.map_or((0, 0), |time| (time.tv_sec, time.tv_nsec));
    let names = uname();
    let mut facts = [seconds.to_le_bytes().as_slice(), &nanoseconds.to_le_bytes()].concat();
    for name in [names.sysname(), names.nodename(), names.release(), names.version(), names.machine()] {
        facts.extend_from_slice(name.to_bytes_with_nul());
    }
    format!("{:x}", esatto_ipc::peer::fnv1a(&facts))
}

/// Returns the facts about this machine that the relay reports.
pub(crate) fn system_info(version: &str, machine_name: &[u8]) -> SystemInfo {
    let facts = system_facts::system_facts();
    let text = |text: String| (!text.is_empty()).then(|| text.into());
    SystemInfo {
        utsname: Some(Utsname {
            sysname: text(facts.sysname),
            version: text(facts.version),
            release: text(facts.release),
            machine: text(facts.machine),
            ..Utsname::default()
        }),
        tracing_service_version: Some(version.into()),
        page_size: facts.page_size_bytes,
        timezone_off_mins: facts.timezone_offset_minutes,
        num_cpus: facts.cpus,
        system_ram_bytes: facts.ram_bytes,
        machine_name: Some(machine_name.to_vec().into()),
        ..SystemInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_hint_and_another_one_without_boot_ids() {
        let hint = id_hint();
        assert!(!hint.is_empty() && !hint.contains(&b'\n'));
        let pseudo = pseudo_boot_id();
        assert!(u64::from_str_radix(&pseudo, 16).is_ok(), "{pseudo}");
        assert_eq!(pseudo, pseudo_boot_id());
    }
}
