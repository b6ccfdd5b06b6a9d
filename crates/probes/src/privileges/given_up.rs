//! Gives up the rights that no data source needs.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

use super::TRACEFS;

/// Capabilities that data sources use; see the table in `privileges`.
const NEEDED: CapabilitySet = CapabilitySet::DAC_READ_SEARCH
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::SYS_NICE);

/// Gives up all capabilities but those that data sources use, and the right to get others by a
/// program with more. Threads that this thread starts later have the same rights.
///
/// A failure is logged: the program works with more rights, too.
pub(crate) fn drop_unneeded() {
    let needed = match tracefs_belongs_to_another() {
        // Root may write files of others only with this one.
        true => NEEDED.union(CapabilitySet::DAC_OVERRIDE),
        false => NEEDED,
    };
    if let Err(why) = drop_all_but(needed) {
        log::warn!("cannot give up capabilities: {why}");
    }
    if let Err(why) = set_no_new_privs(true) {
        log::warn!("cannot give up new privileges: {why}");
    }
}

fn drop_all_but(needed: CapabilitySet) -> rustix::io::Result<()> {
    let now = capabilities(None)?;
    // To take from the bounding set is a right of its own. Without it, no_new_privs is enough.
    if now.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().difference(needed) {
            // The kernel may be older than some capabilities.
            match remove_capability_from_bounding_set(capability) {
                Ok(()) | Err(rustix::io::Errno::INVAL) => {}
                Err(why) => return Err(why),
            }
        }
    }
    // Kernels before 4.3 have no ambient set.
    let _ = clear_ambient_capability_set();
    let kept = now.permitted.intersection(needed);
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() })
}

/// Returns whether the files of tracefs have another owner than this user.
fn tracefs_belongs_to_another() -> bool {
    let owner = |mount: &&str| Path::new("/").join(mount).join("tracing_on").metadata().map(|meta| meta.uid()).ok();
    TRACEFS.iter().find_map(owner).is_some_and(|owner| owner != rustix::process::geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_only_what_data_sources_need() {
        // Capabilities belong to a thread: those of the other tests stay.
        let kept = std::thread::spawn(|| {
            drop_unneeded();
            capabilities(None).unwrap()
        });
        let kept = kept.join().unwrap();
        let allowed = NEEDED.union(CapabilitySet::DAC_OVERRIDE);
        assert!(allowed.contains(kept.permitted) && kept.inheritable.is_empty(), "{kept:?}");
        assert_eq!(kept.effective, kept.permitted);
    }
}
