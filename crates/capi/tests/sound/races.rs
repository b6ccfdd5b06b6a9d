//! Threads that use objects which other threads create and destroy.

use std::process::Command;

use crate::build::{linked, succeed};

#[test]
fn objects_may_be_created_and_destroyed_while_threads_use_them() {
    succeed(&mut Command::new(linked("races.c")));
}
