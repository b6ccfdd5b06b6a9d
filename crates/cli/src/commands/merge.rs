//! The command `esatto merge`: several traces of one machine as one.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use esatto_edit::{Merge, MergeError};
use esatto_inputs::ArchiveKind;
use esatto_protozero::Fields;
use esatto_schema::trace_packet::field;
use esatto_trace::escape::Line;
use esatto_trace::write_packet;

use super::merge_archive;
use crate::args;
use crate::console::say;
use crate::damage::Damage;
use crate::failure::{Attempt as _, Failure};
use crate::result_file::ResultFile;
use crate::trace_input::TraceInput;

/// The way to merge traces that cannot be one.
const ARCHIVE_HINT: &str = "`-o all.zip` writes an archive, in which each machine has its own clocks";
/// Bytes of the snapshots of clocks that are put in order.
const MAX_SNAPSHOT_BYTES: usize = 64 << 20;
/// Time without kernel events between two recordings that is told, in nanoseconds. A shorter one is
/// seldom mistaken for work.
const TOLD_GAP_NS: i64 = 10_000_000;

pub(crate) fn run(args: &args::Merge) -> Result<ExitCode, Failure> {
    let result = ResultFile { path: &args.output, noun: "the trace", force: args.force, is_binary: true };
    result.check()?;
    if let Some(file) = args.files.iter().find(|file| TraceInput::is_read_once(file)) {
        let failure = Failure::new(format!("cannot merge {}", file.display()), "it can be read only once");
        return Err(failure.hint("save it to a file first"));
    }
    refuse_equals(&args.files)?;
    if let Some(kind) = ArchiveKind::of_name(&args.output) {
        return merge_archive::run(args, kind, &result);
    }
    if !args.machines.is_empty() {
        let failure = Failure::new("cannot name the machines of one trace", "only an archive has a manifest");
        return Err(failure.hint("name a result that ends in .zip or .tar"));
    }
    let mut merge = Merge::default();
    let mut uuids = HashMap::new();
    let mut snapshots = Vec::new();
    let mut bytes = 0;
    read(
        &mut merge,
        args,
        |merge, packet, file| {
            merge.note(packet);
            note_uuid(&mut uuids, packet, file);
            let Some(time) = Merge::snapshot_time(packet) else { return Ok(()) };
            bytes += packet.len();
            if bytes > MAX_SNAPSHOT_BYTES {
                let why = format!("its snapshots of clocks have more than {MAX_SNAPSHOT_BYTES} bytes");
                return Err(Failure::new(format!("cannot merge {}", file.display()), why));
            }
            let packet = merge.packet(packet).map_err(|error| refused(file, error))?;
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
                let merged = merge.packet(packet).map_err(|error| refused(file, error))?;
                if let Some(merged) = merged.filter(|_| Merge::snapshot_time(packet).is_none()) {
                    packets += 1;
                    write_packet(out, &merged).attempt(what)?;
                }
                Ok(())
            },
            Merge::end_trace,
        )
        .and_then(|damages| {
            for packet in merge.finish() {
                packets += 1;
                write_packet(out, &packet).attempt(what)?;
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
    if let Some(gap) = merge.kernel_gap().filter(|gap| *gap >= TOLD_GAP_NS) {
        #[allow(clippy::cast_precision_loss, reason = "it is shown in milliseconds")]
        let seconds = gap as f64 / 1e9;
        say!(
            "Up to {seconds:.3} s between the recordings have no kernel events: all programs that show the trace let \
             the last thread of each processor run, and open system calls last, until the next recording"
        );
    }
    Ok(all.exit_code())
}

/// Returns the failure for a trace that does not fit to those before.
fn refused(file: &Path, error: MergeError) -> Failure {
    let failure = Failure::new(format!("cannot merge {}", file.display()), error);
    match error {
        MergeError::OtherBoot | MergeError::OtherClock => failure.hint(ARCHIVE_HINT),
        MergeError::TooManySequences => failure,
    }
}

/// Refuses a file that is named twice.
fn refuse_equals(files: &[PathBuf]) -> Result<(), Failure> {
    let mut known = HashMap::new();
    for file in files {
        // Errors are told when it is opened.
        let Ok(about) = fs::metadata(file) else { continue };
        if let Some(other) = known.insert((about.dev(), about.ino()), file) {
            let why =
                format!("it is the same file as {}, and all its events would be in the result twice", other.display());
            return Err(Failure::new(format!("cannot merge {}", file.display()), why));
        }
    }
    Ok(())
}

/// Notes the identity of a trace, and tells once if another one has it: a copy of it.
fn note_uuid(uuids: &mut HashMap<Vec<u8>, PathBuf>, packet: &[u8], file: &Path) {
    let Some(uuid) = Fields::new(packet).find(|f| f.id == field::TRACE_UUID) else { return };
    match uuids.get_mut(uuid.as_bytes()) {
        Some(other) if other != file => {
            let names = [file, other.as_path()].map(|file| Line(file.display()));
            say!(
                "{} is a part or a copy of the recording of {}: events that both have are in the result twice",
                names[0],
                names[1]
            );
            // A trace may tell its identity very often.
            file.clone_into(other);
        }
        Some(_) => {}
        None => _ = uuids.insert(uuid.as_bytes().to_vec(), file.to_owned()),
    }
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
        take_end(merge).map_err(|error| refused(file, error))?;
        damage.end(&mut packets);
        match damage.error() {
            Some(error) if read == 0 => return Err(Failure::new(what(), error)),
            _ => damages.push(damage),
        }
    }
    Ok(damages)
}
