//! `esatto-sandbox CALL,CALL,… FAMILY,FAMILY,… PROGRAM [ARG…]`
//!
//! Becomes PROGRAM. A signal (SIGSYS) kills it when it makes a system call that is not named, or a
//! socket of a family (a number) that is not named. It is a stricter form of systemd's
//! `SystemCallFilter` and `RestrictAddressFamilies`. Names of calls that this architecture has not
//! got are passed over, as systemd does.

#![forbid(unsafe_code)]

use seccompiler::{BpfProgram, TargetArch, compile_from_json};
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [calls, families, program, rest @ ..] = &args[..] else {
        eprintln!("usage: esatto-sandbox CALLS FAMILIES PROGRAM [ARG…]");
        return ExitCode::FAILURE;
    };
    let error = match filter(calls, families) {
        Ok(filter) => match seccompiler::apply_filter(&filter) {
            Ok(()) => Command::new(program).args(rest).exec().to_string(),
            Err(error) => error.to_string(),
        },
        Err(error) => error,
    };
    eprintln!("esatto-sandbox: {error}");
    ExitCode::FAILURE
}

fn filter(calls: &str, families: &str) -> Result<BpfProgram, String> {
    let mut rules = Vec::new();
    for call in calls.split(',') {
        let plain = json!({ "syscall": call });
        if compile(core::slice::from_ref(&plain)).is_err() {
            continue;
        }
        if call != "socket" {
            rules.push(plain);
            continue;
        }
        for family in families.split(',') {
            let family: u32 = family.parse().map_err(|_| format!("{family} is not the number of a family"))?;
            rules.push(json!({ "syscall": call, "args": [
                { "index": 0, "type": "dword", "op": "eq", "val": family }
            ] }));
        }
    }
    compile(&rules)
}

fn compile(rules: &[Value]) -> Result<BpfProgram, String> {
    let filter = json!({ "filter": {
        "mismatch_action": "kill_process", "match_action": "allow", "filter": rules
    } });
    let arch: TargetArch = std::env::consts::ARCH.try_into().map_err(|_| "unknown architecture".to_owned())?;
    let mut filters = compile_from_json(filter.to_string().as_bytes(), arch).map_err(|error| error.to_string())?;
    filters.remove("filter").ok_or_else(|| "no filter".to_owned())
}
