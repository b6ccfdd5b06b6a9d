//! The command `esatto cut`: a part of a trace in time.

use std::process::ExitCode;

use esatto_edit::Survey;
use esatto_trace::escape::Line;
use esatto_trace::write_packet;

use crate::args;
use crate::console::say;
use crate::damage::Damage;
use crate::failure::{Attempt as _, Failure};
use crate::result_file::ResultFile;
use crate::trace_input::{self, TraceInput};
use crate::trace_point::TracePoint;

pub(crate) fn run(args: &args::Cut) -> Result<ExitCode, Failure> {
    let result = ResultFile { path: &args.output, noun: "the trace", force: args.force, is_binary: true };
    result.check()?;
    let cannot = || format!("cannot cut {}", args.file.display());
    let inputs = trace_input::open_to_read_again(&args.file)?;
    let mut input = TraceInput::of(&inputs, &args.file)?;
    let mut survey = Survey::default();
    // Errors are told when the trace is read for its packets.
    for packet in input.packets().flatten() {
        survey.add(&packet.bytes).attempt(cannot)?;
    }
    let (from, to) = interval(args, &survey)?;
    let bounds = survey.bounds();
    let mut cut = survey.cut(from, to).attempt(cannot)?;
    let mut input = inputs.single().map_or_else(|| TraceInput::open(&args.file), TraceInput::again)?;
    let what = || "cannot write the trace".to_owned();
    let (counts, damage) = result.write(|out| {
        let mut damage = Damage::default();
        let mut packets = input.packets();
        for packet in packets.by_ref() {
            match packet {
                Ok(packet) => cut.add(&packet.bytes, |kept| write_packet(out, kept)).attempt(what)?,
                Err(error) => damage.note(&error),
            }
        }
        damage.end(&mut packets);
        if let Some(error) = damage.error().filter(|_| cut.counts().read == 0) {
            return Err(Failure::new(cannot(), error));
        }
        Ok((cut.counts(), damage))
    })?;
    damage.say(&args.file, "cut");
    if counts.events == 0 {
        say!("The interval has no event{}", times_of(bounds));
    }
    let name = Line(args.output.display());
    say!("Wrote {name}: {} of {} packets, and the names of {} more", counts.kept, counts.read, counts.stripped);
    Ok(damage.exit_code())
}

/// Returns a remark on when the events of a trace are.
fn times_of(bounds: Option<(i64, i64)>) -> String {
    match bounds {
        Some((first, last)) => format!(": those of the trace are from {first} to {last} ns of its clock"),
        None => String::new(),
    }
}

/// Returns the interval on the trace clock.
fn interval(args: &args::Cut, survey: &Survey) -> Result<(i64, i64), Failure> {
    let is_known = [args.from, args.to].iter().flatten().all(|point| matches!(point, TracePoint::Absolute(_)));
    let start = match survey.bounds() {
        Some((first, _)) => first,
        None if is_known => 0,
        None => return Err(Failure::new(format!("cannot cut {}", args.file.display()), "it has no events")),
    };
    let resolve = |point: Option<TracePoint>, default: i64| match point {
        None => Ok(default),
        Some(point) => point.on_trace_clock(start, survey.wall_ahead()).ok_or_else(|| {
            let why = "the trace does not tell the time of day";
            Failure::new(format!("cannot cut {}", args.file.display()), why).hint("name a time after its start: +1.5s")
        }),
    };
    let (from, to) = (resolve(args.from, i64::MIN)?, resolve(args.to, i64::MAX)?);
    if from > to {
        return Err(Failure::new(format!("cannot cut {}", args.file.display()), "--to is before --from"));
    }
    Ok((from, to))
}
