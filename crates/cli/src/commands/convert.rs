//! The command `esatto convert`: a trace in another format.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use esatto_convert::{
    JsonLosses, StackKind, Stacks, wall_time, write_chrome_json, write_folded, write_pprof, write_speedscope,
};
use esatto_inputs::{Inputs, Member};
use esatto_trace::escape::Line;
use esatto_trace::tables::{Table as _, Tables};
use esatto_trace::{Engine, Error, write_packet};

use crate::args::{self, ContentKind, FromFormat, ToFormat};
use crate::console::say;
use crate::damage::Damage;
use crate::failure::{Attempt as _, Failure};
use crate::result_file::ResultFile;
use crate::trace_input::{self, TraceInput, first};

/// Extensions that those of the result replace.
const EXTENSIONS: [&str; 5] = ["pftrace", "perfetto-trace", "perfetto", "pb", "json"];

pub(crate) fn run(args: &args::Convert) -> Result<ExitCode, Failure> {
    let path = first(&args.traces);
    let file = path.display();
    let inputs = trace_input::open(&args.traces)?;
    let is_json = inputs.members().iter().all(Member::is_json);
    if args.from.is_some_and(|from| (from == FromFormat::ChromeJson) != is_json) {
        let is = if is_json { "JSON" } else { "no JSON" };
        return Err(Failure::new(format!("cannot convert {file}"), format!("it is {is}")).hint("leave out --from"));
    }
    let Some(to) = args.to.or_else(|| is_json.then_some(ToFormat::Perfetto)) else {
        let failure = Failure::new(format!("cannot convert {file}"), "no format is named");
        return Err(failure.hint("name a format with --to; `esatto convert --help` lists them"));
    };
    let output = args.output.clone().unwrap_or_else(|| result_beside(path, to));
    let is_binary = matches!(to, ToFormat::Pprof | ToFormat::Perfetto);
    let result = ResultFile { path: &output, noun: "the result", force: args.force, is_binary };
    result.check()?;
    let (told, damage) = if to == ToFormat::Perfetto {
        let several = inputs.members().len();
        if several > 1 {
            let failure =
                Failure::new(format!("cannot convert {file} to one trace"), format!("it is {several} traces"));
            return Err(failure.hint("`esatto merge` makes one trace, or an archive, of several"));
        }
        let mut input = TraceInput::of(&inputs, path)?;
        let told = result.write(|out| write_packets(&mut input, path, out))?;
        for loss in input.losses() {
            say!("{}: {}", Line(&file), Line(loss));
        }
        told
    } else {
        let (engine, damage) = read(&inputs, path)?;
        trace_input::say_losses(&inputs);
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        (result.write(|out| write(args, to, &engine.tables, &name, out))?, damage)
    };
    damage.say(path, "converted");
    say!("Wrote {}: {told}", Line(output.display()));
    Ok(damage.exit_code())
}

fn read(inputs: &Inputs, path: &Path) -> Result<(Engine, Damage), Failure> {
    let (engine, summary) = inputs.read().map_err(trace_input::failed)?;
    if let Some(error) = &engine.sort_error {
        let error = Error::of_temporary_file(error);
        let failure = Failure::new(format!("cannot convert {}", path.display()), &error);
        return Err(failure.hint(error.remedy().unwrap_or_default()));
    }
    let mut damage = Damage::default().with_unread_bytes(summary.unread_bytes);
    summary.errors.iter().for_each(|error| damage.note(error));
    if let Some(error) = damage.error().filter(|_| is_empty(&engine.tables)) {
        return Err(Failure::new(format!("cannot convert {}: it has no content", path.display()), error));
    }
    Ok((engine, damage))
}

/// Writes the packets of a trace, without compression.
fn write_packets(input: &mut TraceInput, path: &Path, out: &mut dyn Write) -> Result<(String, Damage), Failure> {
    let (mut packets, mut damage) = (0_u64, Damage::default());
    let mut reader = input.packets();
    for packet in reader.by_ref() {
        match packet {
            Ok(packet) => {
                write_packet(out, &packet.bytes).attempt(|| "cannot write the result".to_owned())?;
                packets += 1;
            }
            Err(error) => damage.note(&error),
        }
    }
    damage.end(&mut reader);
    if let Some(error) = damage.error().filter(|_| packets == 0) {
        return Err(Failure::new(format!("cannot convert {}", path.display()), error));
    }
    Ok((format!("{packets} packets"), damage))
}

/// Returns whether a trace has nothing that a format could show.
fn is_empty(tables: &Tables) -> bool {
    let content = [tables.slice.rows(), tables.counter.rows(), tables.sched.rows(), tables.android_logs.rows()];
    content.into_iter().all(|rows| rows == 0) && StackKind::ALL.iter().all(|kind| !kind.is_in(tables))
}

/// Writes the result, and returns the line that sums it up.
fn write(
    args: &args::Convert,
    to: ToFormat,
    tables: &Tables,
    name: &str,
    mut out: &mut dyn Write,
) -> Result<String, Failure> {
    let what = || "cannot write the result".to_owned();
    Ok(match to {
        ToFormat::ChromeJson => {
            let losses = write_chrome_json(tables, &mut out).attempt(what)?;
            format!("{} slices, {} counter values{}", tables.slice.rows(), tables.counter.rows(), told(losses))
        }
        ToFormat::Folded => {
            let stacks = Stacks::of(kind(args, tables)?, tables);
            write_folded(&stacks, &mut out).attempt(what)?;
            sum(&stacks)
        }
        ToFormat::Pprof => {
            let stacks = Stacks::of(kind(args, tables)?, tables);
            write_pprof(&stacks, wall_time(tables), &mut out).attempt(what)?;
            sum(&stacks)
        }
        ToFormat::Speedscope => {
            let kinds = match args.of {
                Some(_) => vec![kind(args, tables)?],
                None => StackKind::ALL.into_iter().filter(|kind| kind.is_in(tables)).collect(),
            };
            let profiles = write_speedscope(tables, &kinds, name, &mut out).attempt(what)?;
            format!("{profiles} profiles")
        }
        ToFormat::Perfetto => String::new(),
    })
}

/// Returns the kind of content that is asked for, or the first one that the trace has.
fn kind(args: &args::Convert, tables: &Tables) -> Result<StackKind, Failure> {
    let wanted = args.of.map(|of| match of {
        ContentKind::Slices => StackKind::Slices,
        ContentKind::Samples => StackKind::Samples,
        ContentKind::Heap => StackKind::Heap,
    });
    let found = StackKind::ALL.into_iter().find(|kind| wanted.unwrap_or(*kind) == *kind && kind.is_in(tables));
    found.ok_or_else(|| {
        let why = match wanted {
            None => "it has no slices, samples or heap profiles",
            Some(StackKind::Slices) => "it has no slices",
            Some(StackKind::Samples) => "it has no samples of call stacks",
            Some(StackKind::Heap) => "it has no heap profiles",
        };
        Failure::new(format!("cannot convert {}", first(&args.traces).display()), why)
    })
}

fn sum(stacks: &Stacks) -> String {
    let of = match stacks.kind() {
        StackKind::Slices => "slices, by the time without those inside them",
        StackKind::Samples => "samples, by their number",
        StackKind::Heap => "heap profiles, by the bytes in use",
    };
    format!("{} stacks of {of}", stacks.len())
}

/// Tells what the format cannot express.
fn told(losses: JsonLosses) -> String {
    let JsonLosses { flows, thread_states, samples, .. } = losses;
    let parts = [(flows, "arrows"), (thread_states, "states of threads"), (samples, "samples and allocations")];
    let parts: Vec<_> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if parts.is_empty() { String::new() } else { format!("; the format has no {}", parts.join(", ")) }
}

/// Returns the name of a result: that of the trace, with an extension for the format.
fn result_beside(trace: &Path, format: ToFormat) -> PathBuf {
    let trace = if trace.as_os_str() == "-" { Path::new("trace") } else { trace };
    let extension = match format {
        ToFormat::ChromeJson => "json",
        ToFormat::Folded => "folded",
        ToFormat::Speedscope => "speedscope.json",
        ToFormat::Pprof => "pb.gz",
        ToFormat::Perfetto => "pftrace",
    };
    if trace.extension().is_some_and(|known| EXTENSIONS.iter().any(|own| known == *own)) {
        return trace.with_extension(extension);
    }
    let mut name = OsString::from(trace);
    name.push(".");
    name.push(extension);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_beside_the_trace() {
        let name = |trace: &str, format| result_beside(Path::new(trace), format);
        assert_eq!(name("a/t.pftrace", ToFormat::Pprof), Path::new("a/t.pb.gz"));
        assert_eq!(name("t.gz", ToFormat::ChromeJson), Path::new("t.gz.json"));
        assert_eq!(name("-", ToFormat::Speedscope), Path::new("trace.speedscope.json"));
    }
}
