use std::process::Command;

use crate::build::program;
use crate::flavour::{Flavour, succeed};

/// The reason of a flush, the other transport, the encoding (`docs/spec/c-abi.md` §18).
#[test]
fn and_a_program_that_is_compiled_for_it_is_served() {
    succeed(&mut Command::new(program(Flavour::V59, "v59.c", &[])));
}
