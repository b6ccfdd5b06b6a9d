//! Threads that use what others make and end.

use std::process::Command;

use crate::build::{linked, succeed};

#[test]
fn everything_may_come_and_go() {
    succeed(&mut Command::new(linked("races.c")));
}
