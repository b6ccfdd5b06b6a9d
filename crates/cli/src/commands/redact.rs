//! The command `esatto redact`: a trace without what must not leave the house.

use std::process::ExitCode;

use esatto_edit::Redact;
use esatto_trace::escape::Line;
use esatto_trace::write_packet;

use crate::args;
use crate::console::say;
use crate::damage::Damage;
use crate::failure::{Attempt as _, Failure};
use crate::result_file::ResultFile;
use crate::trace_config;
use crate::trace_input::TraceInput;

pub(crate) fn run(args: &args::Redact) -> Result<ExitCode, Failure> {
    let result = ResultFile { path: &args.output, noun: "the trace", force: args.force, is_binary: true };
    result.check()?;
    let mut redact = filter(args)?;
    let mut input = TraceInput::open(&args.file)?;
    let what = || "cannot write the trace".to_owned();
    let mut damage = Damage::default();
    let (read, kept) = result.write(|out| {
        let (mut read, mut kept) = (0_u64, 0_u64);
        let mut redacted = Vec::new();
        let mut packets = input.packets();
        for packet in packets.by_ref() {
            let packet = match packet {
                Ok(packet) => packet,
                Err(error) => {
                    damage.note(&error);
                    continue;
                }
            };
            read += 1;
            redact.packet(&packet.bytes, &mut redacted);
            if !redacted.is_empty() {
                kept += 1;
                write_packet(out, &redacted).attempt(what)?;
            }
        }
        damage.end(&mut packets);
        match damage.error() {
            Some(error) if read == 0 => Err(Failure::new(format!("cannot redact {}", args.file.display()), error)),
            _ => Ok((read, kept)),
        }
    })?;
    damage.say(&args.file, "redacted");
    if redact.errors() > 0 {
        say!("{} malformed packets are left out", redact.errors());
    }
    if redact.strings_given_up() > 0 {
        say!("{} texts are overwritten whole, because a rule took too long", redact.strings_given_up());
    }
    say!("Wrote {}: {kept} of {read} packets", Line(args.output.display()));
    Ok(damage.exit_code())
}

fn filter(args: &args::Redact) -> Result<Redact, Failure> {
    let Some(path) = &args.filter else {
        return Redact::with_patterns(&args.strings, args.drop_args)
            .map_err(|error| Failure::new("cannot use a pattern of --strings", error));
    };
    let config = trace_config::from_file(path)?;
    let what = || format!("cannot use {} as a filter", path.display());
    let Some(filter) = &config.trace_filter else {
        return Err(Failure::new(what(), "the config has no trace_filter"));
    };
    Redact::from_config(filter).attempt(what)
}
