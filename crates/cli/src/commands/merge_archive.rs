//! `esatto merge` into an archive: the traces stay as they are, and a manifest relates them.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use esatto_edit::SAME_BOOT_NS;
use esatto_inputs::{ArchiveFile, ArchiveKind, write_archive};
use esatto_protozero::Fields;
use esatto_schema::{system_info, trace_packet::field};
use esatto_trace::escape::Line;
use esatto_trace::{FileRules, MergePlan, PacketTimes};

use crate::args;
use crate::console::say;
use crate::failure::{Attempt as _, Failure};
use crate::result_file::ResultFile;
use crate::trace_input::TraceInput;

/// The machine of a trace's service.
const HOST: u32 = 0;

/// Facts about a trace that the manifest needs.
#[derive(Debug, Default)]
struct Facts {
    /// How far the time of day is ahead of the trace clock.
    wall_ahead: Option<i64>,
    /// Machines, and their names if the trace tells them.
    machines: BTreeMap<u32, Option<String>>,
    is_json: bool,
}

/// Writes the archive.
pub(super) fn run(args: &args::Merge, kind: ArchiveKind, result: &ResultFile<'_>) -> Result<ExitCode, Failure> {
    if !args.machines.is_empty() && args.machines.len() != args.files.len() {
        let why = format!("--machines has {} names for {} files", args.machines.len(), args.files.len());
        return Err(Failure::new("cannot merge the traces", why));
    }
    let facts: Vec<Facts> = args.files.iter().map(|file| read(file)).collect::<Result<_, _>>()?;
    let names = names_in_archive(&args.files);
    let groups = if args.machines.is_empty() { groups(&facts, &names) } else { args.machines.clone() };
    let is_one = groups.iter().all(|group| *group == groups[0]);
    let mut plan = MergePlan::default();
    for ((facts, name), group) in facts.iter().zip(&names).zip(&groups) {
        let mut rules = FileRules::new(name.clone());
        if is_one && args.machines.is_empty() {
            // All of them share their clocks, so nothing has to be told.
        } else if facts.machines.keys().any(|id| *id != HOST) {
            let own = |(&id, own): (&u32, &Option<String>)| {
                let name = match (id, own) {
                    (HOST, _) => group.clone(),
                    (id, None) => format!("{group}/{id}"),
                    (_, Some(own)) => format!("{group}/{own}"),
                };
                (id, name)
            };
            rules.machines = facts.machines.iter().map(own).collect();
        } else {
            rules.machine = Some(group.clone());
        }
        plan.files.push(rules);
    }
    let files: Vec<ArchiveFile> = names
        .iter()
        .zip(&args.files)
        .map(|(name, path)| ArchiveFile { name: name.clone(), path: path.clone() })
        .collect();
    result.write(|out| write_archive(kind, &files, &plan, out).attempt(|| "cannot write the archive".to_owned()))?;
    let machines: HashSet<&String> = groups.iter().collect();
    let machines = if machines.len() == 1 { "one machine".to_owned() } else { format!("{} machines", machines.len()) };
    say!("Wrote {}: {} traces of {machines}, and a manifest", Line(args.output.display()), files.len());
    for (facts, name) in facts.iter().zip(&names).filter(|(facts, _)| facts.wall_ahead.is_none() && !is_one) {
        let why = if facts.is_json { "its times are of no clock" } else { "it does not tell the time of day" };
        say!("{}: {why}, so it begins with the first trace; `clocks` in the manifest can place it", Line(name));
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads what the manifest needs of a trace.
fn read(path: &Path) -> Result<Facts, Failure> {
    let mut input = TraceInput::open(path)?;
    let mut facts = Facts { is_json: input.is_json(), ..Facts::default() };
    let (mut times, mut packets, mut last_error) = (PacketTimes::default(), 0_u64, None);
    for packet in input.packets() {
        let packet = match packet {
            Ok(packet) => packet,
            Err(error) => {
                last_error = Some(error);
                continue;
            }
        };
        packets += 1;
        let found = times.add(&packet.bytes);
        let name = facts.machines.entry(found.machine).or_default();
        if found.payload == Some(field::SYSTEM_INFO) && found.machine != HOST {
            *name = machine_name(&packet.bytes).or_else(|| name.take());
        }
    }
    facts.wall_ahead = times.wall_ahead();
    match last_error {
        Some(error) if packets == 0 => Err(Failure::new(format!("cannot merge {}", path.display()), error)),
        Some(error) => {
            say!("{} is damaged: {error}; it is in the archive as it is", Line(path.display()));
            Ok(facts)
        }
        None => Ok(facts),
    }
}

fn machine_name(packet: &[u8]) -> Option<String> {
    let info = Fields::new(packet).find(|f| f.id == field::SYSTEM_INFO)?;
    let name = Fields::new(info.as_bytes()).filter(|f| f.id == system_info::field::MACHINE_NAME).last()?;
    Some(String::from_utf8_lossy(name.as_bytes()).into_owned()).filter(|name| !name.is_empty())
}

/// Returns the names of files in the archive: their own, with a number if several have the same.
fn names_in_archive(files: &[PathBuf]) -> Vec<String> {
    let mut taken = HashSet::new();
    let name = |file: &PathBuf| {
        let own = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
        let numbered = (2..).map(|number| format!("{number}-{own}"));
        let free = core::iter::once(own.clone()).chain(numbered).find(|name| taken.insert(name.clone()));
        free.unwrap_or(own)
    };
    files.iter().map(name).collect()
}

/// Returns a name for the machine of each trace. Traces whose time of day is equally far ahead are
/// of one machine. One that does not tell it is taken for a trace of the first machine.
fn groups(facts: &[Facts], names: &[String]) -> Vec<String> {
    let mut known: Vec<(i64, String)> = Vec::new();
    let mut groups = Vec::new();
    for (facts, name) in facts.iter().zip(names) {
        let group = match facts.wall_ahead {
            None => None,
            Some(ahead) => match known.iter().find(|(other, _)| other.abs_diff(ahead) <= SAME_BOOT_NS) {
                Some((_, group)) => Some(group.clone()),
                None => {
                    let stem = name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(name);
                    let is_taken = known.iter().any(|(_, group)| group == stem);
                    let group = if is_taken { name.clone() } else { stem.to_owned() };
                    known.push((ahead, group.clone()));
                    Some(group)
                }
            },
        };
        groups.push(group);
    }
    let first = known.first().map_or_else(|| "machine".to_owned(), |(_, group)| group.clone());
    groups.into_iter().map(|group| group.unwrap_or_else(|| first.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_an_archive_differ() {
        let files = ["a/t.pftrace", "b/t.pftrace", "2-t.pftrace", "c/t.pftrace"].map(PathBuf::from);
        assert_eq!(names_in_archive(&files), ["t.pftrace", "2-t.pftrace", "2-2-t.pftrace", "3-t.pftrace"]);
    }

    #[test]
    fn traces_of_one_boot_are_of_one_machine() {
        let facts = [Some(5), Some(SAME_BOOT_NS as i64 + 6), None, Some(-7)];
        let facts = facts.map(|wall_ahead| Facts { wall_ahead, ..Facts::default() });
        let names = ["phone.pftrace", "watch.pftrace", "app.json", "phone-2.pftrace"].map(str::to_owned);
        assert_eq!(groups(&facts, &names), ["phone", "watch", "phone", "phone"]);
    }
}
