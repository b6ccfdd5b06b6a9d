//! The command `esatto merge`: several traces of one machine as one.

use std::path::Path;
use std::process::ExitCode;

use esatto_edit::{Merge, MergeError};
use esatto_trace::escape::Line;
use esatto_trace::write_packet;

use crate::args;
use crate::console::say;
use crate::damage::Damage;
use crate::failure::{Attempt as _, Failure};
use crate::result_file::ResultFile;
use crate::trace_input::TraceInput;

/// Bytes of the snapshots of clocks that are put in order.
const MAX_SNAPSHOT_BYTES: usize = 64 << 20;

pub(crate) fn run(args: &args::Merge) -> Result<ExitCode, Failure> {
    let result = ResultFile { path: &args.output, noun: "the trace", force: args.force, is_binary: true };
    result.check()?;
    if let Some(file) = args.files.iter().find(|file| TraceInput::is_read_once(file)) {
        let failure = Failure::new(format!("cannot merge {}", file.display()), "it can be read only once");
        return Err(failure.hint("save it to a file first"));
    }
    let mut merge = Merge::default();
    let mut snapshots = Vec::new();
    let mut bytes = 0;
    read(
        &mut merge,
        args,
        |merge, packet, file| {
            merge.note(packet);
            let Some(time) = Merge::snapshot_time(packet) else { return Ok(()) };
            bytes += packet.len();
            if bytes > MAX_SNAPSHOT_BYTES {
                let why = format!("its snapshots of clocks have more than {MAX_SNAPSHOT_BYTES} bytes");
                return Err(Failure::new(format!("cannot merge {}", file.display()), why));
            }
            let packet = merge.packet(packet).attempt(|| format!("cannot merge {}", file.display()))?;
            snapshots.extend(packet.map(|packet| (time, packet)));
            Ok(())
        },
        |_| Ok(()),
    )?;
    snapshots.sort_by_key(|(time, _)| *time);
    let packets = result.write(|out| {
        let what = || "cannot write the trace".to_owned();
        let mut packets = snapshots.len() as u64;
        for (_, snapshot) in &snapshots {
            write_packet(out, snapshot).attempt(what)?;
        }
        read(
            &mut merge,
            args,
            |merge, packet, file| {
                let merged = merge.packet(packet).attempt(|| format!("cannot merge {}", file.display()))?;
                if let Some(merged) = merged.filter(|_| Merge::snapshot_time(packet).is_none()) {
                    packets += 1;
                    write_packet(out, &merged).attempt(what)?;
                }
                Ok(())
            },
            Merge::end_trace,
        )
        .and_then(|damages| {
            if let Some(stats) = merge.finish() {
                packets += 1;
                write_packet(out, &stats).attempt(what)?;
            }
            Ok((packets, damages))
        })
    });
    let (packets, damages) = packets?;
    let mut all = Damage::default();
    for (damage, file) in damages.into_iter().zip(&args.files) {
        damage.say(file, "merged");
        all.join(damage);
    }
    say!("Wrote {}: {packets} packets of {} traces", Line(args.output.display()), args.files.len());
    Ok(all.exit_code())
}

/// Reads all traces. Returns the damages of each.
fn read(
    merge: &mut Merge,
    args: &args::Merge,
    mut take: impl FnMut(&mut Merge, &[u8], &Path) -> Result<(), Failure>,
    take_end: impl Fn(&mut Merge) -> Result<(), MergeError>,
) -> Result<Vec<Damage>, Failure> {
    let mut damages = Vec::new();
    for (number, file) in args.files.iter().enumerate() {
        merge.begin_trace(number);
        let what = || format!("cannot merge {}", file.display());
        let mut input = TraceInput::open(file)?;
        if input.is_json() {
            return Err(Failure::new(what(), "it is JSON, whose times are of an unknown clock"));
        }
        let (mut read, mut damage) = (0_u64, Damage::default());
        let mut packets = input.packets();
        for packet in packets.by_ref() {
            match packet {
                Ok(packet) => {
                    read += 1;
                    take(merge, &packet.bytes, file)?;
                }
                Err(error) => damage.note(&error),
            }
        }
        take_end(merge).attempt(what)?;
        damage.end(&mut packets);
        match damage.error() {
            Some(error) if read == 0 => return Err(Failure::new(what(), error)),
            _ => damages.push(damage),
        }
    }
    Ok(damages)
}
