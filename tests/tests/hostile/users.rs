//! Attacks in the name of several users, which takes root.

use esatto_tests::{Harness, Skip};
use rustix::thread::set_thread_res_uid;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Two user ids without a user.
pub(crate) const ALICE: u32 = 4_242_001;
pub(crate) const BOB: u32 = 4_242_002;

/// Lets everybody connect to these sockets of a harness.
pub(crate) fn open_to_all(harness: &Harness, sockets: &[&Path]) {
    for path in sockets.iter().copied().chain([harness.folder()]) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("a mode");
    }
}

/// Runs something on a thread of this user. Connections that it makes stay this user's.
pub(crate) fn as_user<T: Send>(uid: u32, run: impl FnOnce() -> T + Send) -> T {
    let body = || {
        let uid = rustix::process::Uid::from_raw(uid);
        // Of this thread alone.
        set_thread_res_uid(uid, uid, uid).expect("root may");
        run()
    };
    std::thread::scope(|scope| scope.spawn(body).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

pub(crate) fn require_root() -> Result<(), Skip> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(Skip("it takes root to be several users".into())) }
}
