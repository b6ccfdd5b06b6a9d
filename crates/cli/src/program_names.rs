//! `esatto` under the name of one of Perfetto's daemons.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

/// The program of this name, if it is one of Perfetto's that this one stands in for; it takes its arguments.
pub(crate) fn program_named(argv0: &OsStr) -> Option<fn(Vec<OsString>) -> ExitCode> {
    match Path::new(argv0).file_name()?.to_str()? {
        "traced" => Some(esatto_daemon::traced),
        "traced_relay" => Some(esatto_daemon::traced_relay),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_come_with_its_folder() {
        assert!(program_named("traced".as_ref()).is_some());
        assert!(program_named("/usr/bin/traced_relay".as_ref()).is_some());
        assert!(program_named("esatto".as_ref()).is_none());
        assert!(program_named("".as_ref()).is_none());
    }
}
