//! Tests whose own program is also the program under test, in a second run.

use std::env;
use std::process::Command;

use crate::{Harness, esatto_bin};

/// The role of the second run.
const ROLE: &str = "ESATTO_TEST_ROLE";

/// A test that runs its program again. Made by [`again!`](crate::again).
#[derive(Clone, Copy, Debug)]
pub struct Again {
    test: &'static str,
}

/// Makes an [`Again`] for the test function of this name, in the module of the caller.
#[macro_export]
macro_rules! again {
    ($test:ident) => {
        $crate::Again::of(concat!(module_path!(), "::", stringify!($test)))
    };
}

impl Again {
    /// For [`again!`](crate::again).
    ///
    /// # Panics
    ///
    /// The path has no crate.
    #[must_use]
    pub fn of(path: &'static str) -> Self {
        Self { test: path.split_once("::").expect("a module of a crate").1 }
    }

    /// Returns the role, if this is the second run.
    #[must_use]
    pub fn role(self) -> Option<String> {
        env::var(ROLE).ok()
    }

    /// Returns the second run, in this role.
    ///
    /// # Panics
    ///
    /// The program of the test has no path.
    #[must_use]
    pub fn command(self, harness: &Harness, role: &str) -> Command {
        let mut command = harness.command(env::current_exe().expect("a program"));
        command.env(ROLE, role).args(["--exact", self.test]);
        command
    }

    /// Returns `esatto record` with these options and the second run as its command.
    #[must_use]
    pub fn recorded(self, harness: &Harness, role: &str, options: &[&str]) -> Command {
        let again = self.command(harness, role);
        let mut command = harness.command(esatto_bin());
        command.env(ROLE, role).arg("record").args(options).arg("--");
        command.arg(again.get_program()).args(again.get_args());
        command
    }
}
