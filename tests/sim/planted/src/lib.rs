//! Planted bugs: changes that make the service or the RPC library wrong, to see whether the
//! simulator notices.
//!
//! The product contains none of them. `cargo xtask sim --planted …` copies the workspace, applies
//! every file of `tests/sim/planted/bugs` to the copy, builds the simulator there and runs it. One
//! build contains all bugs. Each is asleep until [`wake`] names it.
//!
//! # How a bug is written down
//!
//! ```text
//! breaks: a chunk is stored although its sequence was read past it
//! finding: part of the message with which the simulator reports it
//! seed: 1
//! file: crates/service/src/buffer/write.rs
//!
//! Some(last) if [-!is_before(last.id, checked.chunk_id)-]{+false+} => {
//! ```
//!
//! A line `world: rpc` below that of the file names another simulated world than that of the
//! service. The name of the file is the name of the bug. Below the empty line stands a piece of the
//! source file, as `git diff --word-diff` writes changes: `[-old-]{+new+}`. The piece without the
//! new parts must occur exactly once in the source file. White space does not count, so that moved,
//! indented and wrapped lines still match. Old and new are both expressions or both statements,
//! because the copy contains `if` the bug is awake `{ new } else { old }`.

#![forbid(unsafe_code)]

mod bug;
mod plant;

pub use bug::Bug;
pub use plant::plant;

use std::cell::RefCell;

std::thread_local! {
    static AWAKE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Wakes the bug of this name in this thread, and puts all others to sleep. No bug has the empty
/// name.
pub fn wake(name: &str) {
    AWAKE.with_borrow_mut(|awake| name.clone_into(awake));
}

/// Returns true if the bug of this name is awake in this thread.
#[must_use]
pub fn is_awake(name: &str) -> bool {
    AWAKE.with_borrow(|awake| awake == name)
}
