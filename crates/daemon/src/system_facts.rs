//! Facts about the machine that the service needs and cannot find out itself.

use std::fs;

use esatto_service::{ServiceConfig, SystemFacts};
use rustix::system::{sysinfo, uname};

use crate::error::Error;

/// Environment variable with the name of this machine, for the filters of configs.
const MACHINE_NAME: &str = "PERFETTO_MACHINE_NAME";

/// Returns the configuration of a service that runs in this process: facts and random numbers.
pub(crate) fn service_config(version: &str) -> Result<ServiceConfig, Error> {
    let mut seed = [0; 32];
    let got = rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty());
    // Up to 256 bytes arrive completely or not at all.
    got.map_err(Error::system("get random bytes"))?;
    Ok(ServiceConfig { uid: uid(), version: version.to_owned(), system: system_facts(), seed })
}

/// Returns the user of this process.
pub(crate) fn uid() -> i32 {
    rustix::process::geteuid().as_raw() as i32
}

pub(crate) fn pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Returns how many descriptors this process may have.
pub(crate) fn max_descriptors() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

pub(crate) fn system_facts() -> SystemFacts {
    let names = uname();
    let text = |name: &core::ffi::CStr| name.to_string_lossy().into_owned();
    let memory = sysinfo();
    SystemFacts {
        sysname: text(names.sysname()),
        version: text(names.version()),
        release: text(names.release()),
        machine: text(names.machine()),
        page_size_bytes: u32::try_from(rustix::param::page_size()).ok(),
        timezone_offset_minutes: timezone_offset_minutes(),
        cpus: configured_cpus(),
        ram_bytes: Some(ram_bytes(memory.totalram, memory.mem_unit)),
        machine_name: machine_name(),
    }
}

/// Returns the current difference between local time and UTC.
pub(crate) fn timezone_offset_minutes() -> Option<i32> {
    Some(chrono::Local::now().offset().local_minus_utc() / 60)
}

/// Returns the name that filters use for this machine: that of the environment, else the kernel's
/// name.
pub(crate) fn machine_name() -> String {
    let set = std::env::var_os(MACHINE_NAME).filter(|name| !name.is_empty());
    match set {
        Some(name) => name.to_string_lossy().into_owned(),
        None => uname().sysname().to_string_lossy().into_owned(),
    }
}

/// Converts the kernel's count of memory units, whose type has the width of a machine word, into
/// bytes.
fn ram_bytes(units: impl TryInto<u64>, unit_bytes: u32) -> u64 {
    units.try_into().map_or(u64::MAX, |units| units.saturating_mul(u64::from(unit_bytes)))
}

/// Returns the number of configured CPUs, online or not: the highest number in `0-7`, plus one.
fn configured_cpus() -> Option<u32> {
    let possible = fs::read_to_string("/sys/devices/system/cpu/possible").ok();
    let highest = possible.as_deref().and_then(|list| list.trim().rsplit([',', '-']).next()?.parse::<u32>().ok());
    match highest {
        Some(highest) => highest.checked_add(1),
        None => u32::try_from(std::thread::available_parallelism().ok()?.get()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_name_memory_and_processors() {
        let facts = system_facts();
        assert_eq!(facts.sysname, "Linux");
        assert!(facts.cpus.is_some_and(|n| n > 0) && facts.ram_bytes.is_some_and(|n| n > 0));
    }

    #[test]
    fn two_services_do_not_draw_the_same_uuids() {
        assert_ne!(service_config("a").unwrap().seed, service_config("a").unwrap().seed);
    }
}
