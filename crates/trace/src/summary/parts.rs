//! Summary of several traces that are read as one.

use std::io::Read;

use super::table::Table;
use super::{Loss, Summary};
use crate::engine::survey::widen;
use crate::engine::{Engine, Import, MAX_PARTS, Part, ReadOptions};
use crate::escape::Line;
use crate::merge_plan::MergePlan;
use serde_json::{Value, json};

/// A trace that was read together with others.
#[derive(Debug)]
#[non_exhaustive]
pub struct PartSummary {
    /// Its name.
    pub name: String,
    /// Summary of the trace alone, in its own time.
    pub summary: Summary,
    /// The machine of its service, by its id in [`Summary::machines`].
    pub machine_id: u32,
    /// The earliest and the latest timestamp of its packets, in nanoseconds of the clock of the
    /// result.
    pub packet_times_ns: Option<(i64, i64)>,
}

impl Summary {
    /// Reads a trace of an archive to its end, alone, into tables, too.
    pub fn read_part<R: Read>(part: Part<R>, options: &ReadOptions) -> (Engine, Self) {
        let mut import = Import::read_part(part, options, false);
        let summary = Self::new(&mut import);
        (import.engine, summary)
    }

    /// Reads several traces to their ends, as one, by the rules of a plan.
    ///
    /// `open` opens the trace at a position, and is called twice for each: what a trace lost is a
    /// matter of that trace, so each is also read alone.
    pub fn read_parts<R: Read>(plan: &MergePlan, names: &[String], open: impl FnMut(usize) -> Part<R>) -> Self {
        Self::read_parts_with_engine(plan, names, open).1
    }

    /// Reads several traces to their ends, as one, into tables, too.
    pub fn read_parts_with_engine<R: Read>(
        plan: &MergePlan,
        names: &[String],
        mut open: impl FnMut(usize) -> Part<R>,
    ) -> (Engine, Self) {
        let alone = ReadOptions::without_kernel_events();
        let read = 0..names.len().min(MAX_PARTS);
        let alone: Vec<Self> = read.map(|position| Self::read_part(open(position), &alone).1).collect();
        let mut import = Import::read_parts(plan, (0..names.len()).map(open));
        let mut summary = Self::new(&mut import);
        let mut times = vec![None; alone.len()];
        for sequence in &import.sequences {
            let file = import.context.origins.origin(sequence.machine).file;
            if let (Some(times), Some((from, to))) = (times.get_mut(file), sequence.times) {
                widen(times, from);
                widen(times, to);
            }
        }
        let parts = names.iter().zip(alone).zip(times).enumerate();
        let part = |(file, ((name, summary), packet_times_ns)): (usize, ((&String, Self), _))| PartSummary {
            name: name.clone(),
            summary,
            machine_id: import.base_machine(file),
            packet_times_ns,
        };
        summary.parts = parts.map(part).collect();
        (import.engine, summary)
    }

    /// Returns the losses of all parts.
    pub(super) fn losses_of_parts(&self) -> Vec<Loss> {
        let parts = self.parts.iter().enumerate();
        let losses = parts.flat_map(|(position, part)| {
            part.summary.losses().into_iter().map(move |loss| Loss {
                place: format!("{} of {}", loss.place, part.name),
                part: Some(position),
                ..loss
            })
        });
        losses.collect()
    }

    /// Returns what would prevent the loss of a part.
    pub(super) fn remedy_of_part(&self, loss: &Loss) -> Option<String> {
        let part = self.parts.get(loss.part?)?;
        let place = loss.place.strip_suffix(&format!(" of {}", part.name)).unwrap_or(&loss.place).to_owned();
        Some(part.summary.remedy(&Loss { place, part: None, ..loss.clone() }))
    }

    pub(super) fn part_table(&self) -> Table {
        let start = self.packet_times_ns.map_or(0, |(from, _)| from);
        let mut table = Table::new(
            format!("Traces ({})", self.parts.len()),
            &["name", "machine", "packets#", "from s#", "to s#", "state"],
        );
        for part in &self.parts {
            table.row(|| {
                let machine = self.machines.iter().find(|machine| machine.id == part.machine_id);
                let machine = machine.and_then(|machine| machine.name()).unwrap_or_default().to_owned();
                #[allow(clippy::cast_precision_loss, reason = "it is shown in milliseconds")]
                let seconds = |ns: i64| format!("{:.3}", ns.saturating_sub(start) as f64 / 1e9);
                let [from, to] = match part.packet_times_ns {
                    Some((from, to)) => [seconds(from), seconds(to)],
                    None => [String::new(), String::new()],
                };
                let lost = part.summary.losses().iter().filter(|loss| !loss.expected).count();
                let state = match (part.summary.errors.first(), lost) {
                    (Some(error), _) => Line(error).to_string(),
                    (None, 0) => String::new(),
                    (None, 1) => "1 loss".to_owned(),
                    (None, lost) => format!("{lost} losses"),
                };
                [part.name.clone(), machine, part.summary.packets.to_string(), from, to, state]
            });
        }
        table
    }

    pub(super) fn parts_json(&self) -> Vec<Value> {
        let part = |part: &PartSummary| {
            json!({
                "name": part.name,
                "machine_id": part.machine_id,
                "packets": part.summary.packets,
                "first_packet_ns": part.packet_times_ns.map(|times| times.0),
                "last_packet_ns": part.packet_times_ns.map(|times| times.1),
                "errors": part.summary.errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "uuid": part.summary.uuid,
            })
        };
        self.parts.iter().map(part).collect()
    }
}
