//! The tracing service as a small program of its own: `traced [--version] [--set-socket-permissions PG:PM:CG:CM]`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use esatto_daemon::SocketPermissions;

const USAGE: &str = "usage: traced [-v] [--version] [--set-socket-permissions PGROUP:PMODE:CGROUP:CMODE]";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(line) => {
            eprintln!("traced: {line}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let (mut verbosity, mut permissions) = (0, None);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-v" | "--verbose" => verbosity += 1,
            "--version" => {
                println!("Esatto v{}", env!("CARGO_PKG_VERSION"));
                return Ok(());
            }
            "--set-socket-permissions" => {
                let text = args.next().ok_or(USAGE)?;
                permissions = Some(text.parse::<SocketPermissions>().map_err(|e| e.to_string())?);
            }
            other => match other.strip_prefix("--set-socket-permissions=") {
                Some(text) => {
                    permissions = Some(text.parse().map_err(|e: esatto_daemon::PermissionsError| e.to_string())?)
                }
                None => return Err(format!("unknown argument {other}; {USAGE}")),
            },
        }
    }
    esatto_daemon::foreground(verbosity, permissions).map_err(|e| e.to_string())
}
