//! Names of Perfetto programs under which `esatto` can be called.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use crate::commands::ui_bridge;
use crate::perfetto::{self, Program};

/// Returns the program of this name, if `esatto` stands in for it. It takes the arguments.
pub(crate) fn program_named(argv0: &OsStr) -> Option<Program> {
    match Path::new(argv0).file_name()?.to_str()? {
        "perfetto" => Some(perfetto::perfetto),
        "tracebox" => Some(tracebox),
        "trigger_perfetto" => Some(perfetto::trigger_perfetto),
        "traced" => Some(esatto_daemon::traced),
        "traced_probes" => Some(esatto_probes::traced_probes),
        "traced_relay" => Some(esatto_daemon::traced_relay),
        "websocket_bridge" => Some(ui_bridge::websocket_bridge),
        _ => None,
    }
}

fn tracebox(args: Vec<OsString>) -> ExitCode {
    perfetto::tracebox(args, program_named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_come_with_its_folder() {
        assert!(program_named("traced".as_ref()).is_some());
        assert!(program_named("/usr/bin/traced_relay".as_ref()).is_some());
        assert!(program_named("traced_probes".as_ref()).is_some());
        assert!(program_named("perfetto".as_ref()).is_some());
        assert!(program_named("./websocket_bridge".as_ref()).is_some());
        assert!(program_named("esatto".as_ref()).is_none());
        assert!(program_named("".as_ref()).is_none());
    }
}
