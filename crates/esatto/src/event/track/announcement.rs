//! Descriptors of processes and threads that the program has set.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use esatto_instances::ThreadGate as _;

use super::{Kind, Parent, Track};
use crate::os::process_info;
use crate::trace_point_gate::Gate;

/// They replace the descriptors that sequences would write.
static ANNOUNCED: Mutex<BTreeMap<u64, Arc<Track>>> = Mutex::new(BTreeMap::new());

/// Saves trace points the lock while there are none.
static ANY: AtomicBool = AtomicBool::new(false);

/// True if the tracks of this process's threads stay apart from those of the operating system's
/// events.
static APART: AtomicBool = AtomicBool::new(false);

fn lock() -> MutexGuard<'static, BTreeMap<u64, Arc<Track>>> {
    ANNOUNCED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the descriptors while the process forks.
pub(crate) fn hold_for_fork() -> impl Sized {
    lock()
}

/// Stores the descriptor of a thread or process for later sessions.
pub(crate) fn announce(track: &Track) {
    let _closed = Gate::close();
    let mut announced = lock();
    let mut track = track.clone();
    if let Kind::Thread(None) = track.kind {
        // Any thread may write it later.
        let tid = process_info::tid();
        (track.seed, track.parent, track.kind) = (u64::from(tid), Parent::Process, Kind::Thread(Some(tid)));
    }
    announced.insert(track.uuid(), Arc::new(track));
    ANY.store(true, Ordering::Release);
}

/// Returns the descriptor that the program has set for a thread or process.
pub(crate) fn get(uuid: u64) -> Option<Arc<Track>> {
    if !ANY.load(Ordering::Acquire) {
        return None;
    }
    lock().get(&uuid).cloned()
}

pub(crate) fn keep_apart_from_system_tracks() {
    APART.store(true, Ordering::Relaxed);
}

pub(crate) fn are_apart_from_system_tracks() -> bool {
    APART.load(Ordering::Relaxed)
}
