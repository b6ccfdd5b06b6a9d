//! Children of a fork.

use std::process::Command;

use esatto_tests::{Harness, Implementation, Peer, skip};

use crate::build::{linked, succeed};

#[test]
fn a_child_forked_in_a_packet_records_none_of_it() {
    succeed(&mut Command::new(linked("fork_in_packet.c")));
}

/// Here the memory is shared with another process. Without precautions the child would share it.
#[test]
fn a_child_forked_in_a_packet_writes_nothing_into_shared_memory() {
    skip(|| {
        Peer::Official.require()?;
        let harness = Harness::new();
        let service = harness.service(Implementation::Theirs);
        succeed(harness.command(linked("fork_in_packet.c")).env("SYSTEM", "1"));
        drop(service);
        Ok(())
    });
}

#[test]
fn callbacks_may_fork() {
    succeed(&mut Command::new(linked("fork_in_callback.c")));
}

#[test]
fn a_child_finds_every_lock_free() {
    succeed(&mut Command::new(linked("fork_storm.c")));
}
