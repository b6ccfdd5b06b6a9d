use std::process::Command;

use crate::abi_version::{AbiVersion, succeed};
use crate::build::program;

/// The program checks the reason of a flush, the other transport and the encoding
/// (`docs/spec/c-abi.md` §18).
#[test]
fn functions_of_v59_work() {
    succeed(&mut Command::new(program(AbiVersion::V59, "v59.c", &[])));
}
