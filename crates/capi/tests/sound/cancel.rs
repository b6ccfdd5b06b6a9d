//! Threads that are cancelled (`pthread_cancel`).

use std::process::Command;

use esatto_tests::{Harness, Implementation};

use crate::build::{linked, succeed};

#[test]
fn threads_may_be_cancelled_while_they_trace() {
    succeed(&mut Command::new(linked("cancel.c")));
}

#[test]
fn threads_may_be_cancelled_while_a_service_records_them() {
    let harness = Harness::new();
    let service = harness.service(Implementation::Ours);
    succeed(harness.command(linked("cancel.c")).env("SYSTEM", "1"));
    drop(service);
}
