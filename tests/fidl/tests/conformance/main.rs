//! The bytes of Fuchsia's conformance suite as facts: the same values, and version 2 of the wire
//! format. Each module names the files of `src/tests/fidl/conformance_suite` whose cases it has.
//!
//! There are no cases here of types and rights of Zircon's handles, of values that Rust cannot
//! express, and of bindings that keep unknown members.

#![allow(missing_docs, reason = "a test")]

mod golden;
mod handles;
mod messages;
mod numbers;
mod padding;
mod recursion;
mod strings;
mod structs;
mod support;
mod tables;
mod transformer;
mod unions;
mod vectors;
