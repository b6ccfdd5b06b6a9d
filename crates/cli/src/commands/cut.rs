//! The command `esatto cut`: a part of a trace in time.

use std::path::Path;
use std::process::ExitCode;

use esatto_edit::{Bounds, Cut};
use esatto_trace::escape::Line;
use esatto_trace::write_packet;

use crate::args;
use crate::console::say;
use crate::damage::Damage;
use crate::failure::{Attempt as _, Failure};
use crate::result_file::ResultFile;
use crate::trace_input::TraceInput;
use crate::trace_point::TracePoint;

pub(crate) fn run(args: &args::Cut) -> Result<ExitCode, Failure> {
    let result = ResultFile { path: &args.output, noun: "the trace", force: args.force, is_binary: true };
    result.check()?;
    let (from, to) = interval(args)?;
    if from > to {
        let failure = Failure::new(format!("cannot cut {}", args.file.display()), "--to is before --from");
        return Err(failure);
    }
    let mut input = TraceInput::open(&args.file)?;
    let what = || "cannot write the trace".to_owned();
    let (counts, damage) = result.write(|out| {
        let mut cut = Cut::new(from, to);
        let mut damage = Damage::default();
        let mut packets = input.packets();
        for packet in packets.by_ref() {
            match packet {
                Ok(packet) => cut.add(&packet.bytes, |kept| write_packet(out, kept)).attempt(what)?,
                Err(error) => damage.note(&error),
            }
        }
        damage.end(&mut packets);
        cut.finish(|kept| write_packet(out, kept)).attempt(what)?;
        if let Some(error) = damage.error().filter(|_| cut.counts().read == 0) {
            return Err(Failure::new(format!("cannot cut {}", args.file.display()), error));
        }
        Ok((cut.counts(), damage))
    })?;
    damage.say(&args.file, "cut");
    if counts.events == 0 {
        say!("The interval has no event{}", times_of(&args.file));
    }
    let name = Line(args.output.display());
    say!("Wrote {name}: {} of {} packets, and the names of {} more", counts.kept, counts.read, counts.stripped);
    Ok(damage.exit_code())
}

/// Returns a remark on when the events of a trace are, if it can be read again.
fn times_of(path: &Path) -> String {
    let bounds = Some(path).filter(|path| !TraceInput::is_read_once(path)).and_then(|path| bounds(path).ok());
    match bounds.and_then(|bounds| bounds.bounds()) {
        Some((first, last)) => format!(": those of the trace are from {first} to {last} ns of its clock"),
        None => String::new(),
    }
}

/// Returns the interval on the trace clock. If it is named by the begin of the trace or by the time
/// of day, the trace is read for it.
fn interval(args: &args::Cut) -> Result<(i64, i64), Failure> {
    let points = [args.from, args.to];
    let is_known = points.iter().flatten().all(|point| matches!(point, TracePoint::Absolute(_)));
    let (mut start, mut ahead) = (0, None);
    if !is_known {
        let bounds = bounds(&args.file)?;
        let Some((first, _)) = bounds.bounds() else {
            return Err(Failure::new(format!("cannot cut {}", args.file.display()), "it has no events"));
        };
        (start, ahead) = (first, bounds.wall_ahead());
    }
    let resolve = |point: Option<TracePoint>, default: i64| match point {
        None => Ok(default),
        Some(point) => point.on_trace_clock(start, ahead).ok_or_else(|| {
            let why = "the trace does not tell the time of day";
            Failure::new(format!("cannot cut {}", args.file.display()), why).hint("name a time after its start: +1.5s")
        }),
    };
    Ok((resolve(args.from, i64::MIN)?, resolve(args.to, i64::MAX)?))
}

fn bounds(path: &Path) -> Result<Bounds, Failure> {
    if TraceInput::is_read_once(path) {
        let failure = Failure::new(format!("cannot cut {}", path.display()), "it can be read only once");
        return Err(failure.hint("name times in nanoseconds of the trace clock, or save it to a file first"));
    }
    let mut bounds = Bounds::default();
    // Errors are told when the trace is read for its packets.
    for packet in TraceInput::open(path)?.packets().flatten() {
        bounds.add(&packet.bytes);
    }
    Ok(bounds)
}
