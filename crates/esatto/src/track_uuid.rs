//! Track ids on which several libraries of one process agree (`docs/spec/track-event.md` §8).

use core::sync::atomic::{AtomicU64, Ordering};

use esatto_instances::Uncancelled;

use crate::hash::{fnv, fnv_from, mix};
use crate::random::random;

pub(crate) const COUNTER_MAGIC: u64 = 0xb1a4_a67d_7970_839e;
pub(crate) const NAMED_TRACK_MAGIC: u64 = 0xcd57_1ec5_ead3_7024;
pub(crate) const STATE_MAGIC: u64 = 0x2e23_98ec_92e8_9138;

/// 0: not known yet.
static PROCESS_UUID: AtomicU64 = AtomicU64::new(0);

/// Sets the track id of this process, unless it is in use already.
pub(crate) fn set_process_uuid(uuid: u64) {
    let _ = PROCESS_UUID.compare_exchange(0, uuid, Ordering::Relaxed, Ordering::Relaxed);
}

/// Returns the track id of this process.
#[inline]
pub(crate) fn process_uuid() -> u64 {
    match PROCESS_UUID.load(Ordering::Relaxed) {
        0 => find_process_uuid(),
        uuid => uuid,
    }
}

#[cold]
fn find_process_uuid() -> u64 {
    let uuid = uuid_of_process(process_start_ticks(), std::process::id(), pid_namespace()).max(1);
    // If the start time is unknown, the id is random: the first one counts.
    match PROCESS_UUID.compare_exchange(0, uuid, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => uuid,
        Err(first) => first,
    }
}

/// Forgets the id in the child of a fork, which is another process.
pub(crate) fn forget_process() {
    PROCESS_UUID.store(0, Ordering::Relaxed);
}

/// Returns the track id of a thread of this process.
pub(crate) fn thread_uuid(tid: u32) -> u64 {
    process_uuid() ^ u64::from(tid)
}

/// Returns the part that a parent has in the ids of tracks below it.
///
/// Below the process, or nothing, it is the parent itself, as in all libraries. Elsewhere it is
/// mixed, so that ids and names of two levels cannot cancel each other.
pub(crate) fn parent_part(parent: u64) -> u64 {
    if parent == 0 || parent == process_uuid() { parent } else { mix(parent) }
}

/// `namespace` tells processes of containers apart that start in the same tick: in each of them the
/// first one has the number 1. 0 leaves the id that all libraries compute.
const fn uuid_of_process(start_ticks: u64, pid: u32, namespace: u64) -> u64 {
    let uuid = fnv_from(fnv(&start_ticks.to_le_bytes()), &pid.to_le_bytes());
    if namespace == 0 { uuid } else { fnv_from(uuid, &namespace.to_le_bytes()) }
}

/// Returns the number of the namespace of process numbers; 0 if it is the machine's own, or not
/// known.
fn pid_namespace() -> u64 {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use std::os::unix::fs::MetadataExt as _;

        /// The kernel's number of the first namespace.
        const OF_MACHINE: u64 = 0xefff_fffc;
        let _uncancelled = Uncancelled::begin();
        let namespace = std::fs::metadata("/proc/self/ns/pid").map_or(0, |file| file.ino());
        if namespace == OF_MACHINE { 0 } else { namespace }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    0
}

/// Returns when this process started, in clock ticks since boot; a random number if `/proc` does
/// not say.
fn process_start_ticks() -> u64 {
    let _uncancelled = Uncancelled::begin();
    std::fs::read("/proc/self/stat").ok().and_then(|stat| start_ticks(&stat)).unwrap_or_else(random)
}

/// Returns field 22 of a line of `/proc/PID/stat`: when the process started, in ticks since boot.
/// The second field is a name in parentheses that may contain anything.
pub(crate) fn start_ticks(stat: &[u8]) -> Option<u64> {
    let after_name = stat.windows(2).rposition(|w| w == b") ")? + 2;
    let field = stat[after_name..].split(|&b| b == b' ').nth(22 - 3)?;
    core::str::from_utf8(field).ok()?.trim().parse().ok().filter(|&ticks| ticks != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_the_spec() {
        let process = uuid_of_process(123_456, 1000, 0);
        assert_eq!(process, 0x0d2f_d71b_3e50_d893);
        assert_eq!(process ^ 1001, 0x0d2f_d71b_3e50_db7a);
        assert_eq!(fnv(b"mytrack") ^ NAMED_TRACK_MAGIC ^ process, 0x41fa_c56a_3687_1705);
        assert_eq!(fnv(b"mytrack") ^ COUNTER_MAGIC ^ process, 0x3d09_7dd2_a524_e4bf);
        assert_eq!(fnv(b"mytrack") ^ STATE_MAGIC ^ process, 0xa28e_4343_4ebc_f619);
        assert_eq!(fnv(b"thread_time") ^ COUNTER_MAGIC ^ process ^ 1001, 0x4864_be8d_3848_ec6f);
        assert_eq!(5 ^ process, 0x0d2f_d71b_3e50_d896);
    }

    #[test]
    fn processes_of_two_containers_differ() {
        let [a, b] = [4_026_532_201, 4_026_532_202].map(|namespace| uuid_of_process(123_456, 1, namespace));
        assert!(a != b && a != uuid_of_process(123_456, 1, 0));
    }

    #[test]
    fn the_start_time_is_found_after_any_process_name() {
        let stat = b"12 (a) S (b) ) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21";
        assert_eq!(start_ticks(stat), Some(4711));
        assert_eq!(start_ticks(b"12 (x) S 1"), None);
    }
}
