//! Traces that are exported: their hashes, their tables, their facts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;

use esatto_inputs::Inputs;
use esatto_tables::{ClockOffsets, Damage, OpenTrace};
use esatto_trace::{Engine, Part};
use ring::digest::{Context, SHA256};

use crate::catalogue::TraceEntry;
use crate::layout::{PartitionKey, UNKNOWN};
use crate::table_file::{Times, hex};

/// A file that may be a trace. Its errors are texts: they concern this trace alone.
#[derive(Debug)]
pub(crate) struct TraceSource {
    file: File,
    name: String,
    pub(crate) size: u64,
    pub(crate) sha256: String,
}

impl TraceSource {
    /// Opens a file, and reads it once for its hash.
    pub(crate) fn open(path: &Path, limit: u64) -> Result<Self, String> {
        let cannot = |error: io::Error| format!("cannot read it: {error}");
        let url = path.to_str().filter(|text| crate::url::is_url(text));
        let mut file = match url {
            Some(url) => crate::url::fetch(url, limit).map_err(|error| error.to_string())?,
            None => File::open(path).map_err(cannot)?,
        };
        let metadata = file.metadata().map_err(cannot)?;
        if metadata.is_dir() {
            return Err("it is a folder; name its files, such as 'FOLDER/*.pftrace'".to_owned());
        }
        if metadata.len() > limit {
            let (size, limit) = (metadata.len() >> 20, limit >> 20);
            return Err(format!(
                "it has {size} MiB, more than the {limit} MiB that a trace may take in memory; raise --memory-limit, or \
                 lower --jobs"
            ));
        }
        let mut hash = Context::new(&SHA256);
        let mut buffer = vec![0; 1 << 16];
        let mut size = 0;
        loop {
            let count = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(cannot(error)),
            };
            hash.update(&buffer[..count]);
            size += count as u64;
            if size > limit {
                return Err(format!("it has more than the {} MiB that a trace may take in memory", limit >> 20));
            }
        }
        file.rewind().map_err(cannot)?;
        let sha256 = hex(hash.finish().as_ref());
        Ok(Self { file, name: path.to_string_lossy().into_owned(), size, sha256 })
    }

    /// Reads the trace into tables. The second value is what is wrong with the file.
    pub(crate) fn read(self, number: u32) -> Result<(OpenTrace, Option<Damage>), String> {
        let inputs = Inputs::of_file(&self.name, self.file).map_err(|error| without_name(&error, &self.name))?;
        let engine = match inputs.single() {
            Some(member) if !inputs.is_merged() => {
                let reader = member.open().map_err(|error| without_name(&error, &self.name))?;
                Engine::read_part(Part { stored_bytes: member.stored_bytes(), ..Part::new(member.name(), reader) })
            }
            _ => inputs.read().map_err(|error| without_name(&error, &self.name))?.0,
        };
        let trace = OpenTrace::new(engine, number);
        let mut damage = trace.damage();
        for (name, why) in inputs.errors() {
            match &mut damage {
                Some(damage) => damage.mistakes += 1,
                None => damage = Some(Damage::new(format!("{name}: {why}"))),
            }
        }
        match damage {
            Some(damage) if trace.is_empty() => Err(damage.first),
            damage => Ok((trace, damage)),
        }
    }
}

/// The name of the trace precedes all reasons already.
fn without_name(error: &esatto_inputs::Error, name: &str) -> String {
    let text = error.to_string();
    match text.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")) {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

/// The clock of the time of the day, `CLOCK_REALTIME`.
const REALTIME: i64 = 1;

/// Returns the row of the catalogue for a trace, without its files.
pub(crate) fn describe(
    trace: &OpenTrace,
    times: Times,
    damage: Option<&Damage>,
    attributes: &BTreeMap<PartitionKey, String>,
) -> TraceEntry {
    let clock = trace.clock_offsets(REALTIME);
    let (start, end) = times.0.unzip();
    let started = trace.metadata("tracing_started_ns").and_then(|text| text.parse().ok());
    let start = start.or(started);
    let date = start.or_else(|| first_snapshot(trace)).and_then(|ts| clock_time(&clock, ts)).map(date_text);
    let attribute = |key: PartitionKey| {
        let stated = attributes.get(&key).cloned();
        let value = stated.or_else(|| trace.metadata(&format!("manifest_attribute.{}", key.name())));
        value.filter(|value| !value.is_empty())
    };
    TraceEntry {
        trace_number: i64::from(trace.number()),
        start_ts: start,
        end_ts: end.or(start),
        start_time: start.and_then(|ts| clock_time(&clock, ts)),
        end_time: end.or(start).and_then(|ts| clock_time(&clock, ts)),
        date: attribute(PartitionKey::Date).or(date).unwrap_or_else(|| UNKNOWN.to_owned()),
        host: attribute(PartitionKey::Host).or_else(|| machine_name(trace)).unwrap_or_else(|| UNKNOWN.to_owned()),
        version: attribute(PartitionKey::Version).unwrap_or_else(|| UNKNOWN.to_owned()),
        trace_uuid: trace.metadata("trace_uuid"),
        session_name: trace.metadata("unique_session_name"),
        system_name: trace.metadata("system_name"),
        system_release: trace.metadata("system_release"),
        system_machine: trace.metadata("system_machine"),
        losses: losses(trace),
        errors: damage.map_or(0, |damage| i64::try_from(damage.mistakes).unwrap_or(i64::MAX)),
        damage: damage.map(|damage| damage.first.clone()),
        ..TraceEntry::default()
    }
}

fn clock_time(clock: &ClockOffsets, ts: i64) -> Option<i64> {
    clock.convert(ts)
}

fn first_snapshot(trace: &OpenTrace) -> Option<i64> {
    trace.engine().tables.clock_snapshot.ts.iter().copied().min()
}

fn machine_name(trace: &OpenTrace) -> Option<String> {
    let machines = &trace.engine().tables.machine;
    let name = (*machines.name.first()?)?;
    Some(trace.text(name).to_owned()).filter(|name| !name.is_empty())
}

fn losses(trace: &OpenTrace) -> i64 {
    let stats = &trace.engine().tables.stats;
    (0..stats.value.len())
        .filter(|&row| trace.text(stats.severity[row]) == "data_loss")
        .fold(0_i64, |sum, row| sum.saturating_add(stats.value[row].max(0)))
}

/// Returns the day of a time since 1970 in nanoseconds, in UTC: `2026-11-28`.
fn date_text(time: i64) -> String {
    // The algorithm of Howard Hinnant's `civil_from_days`.
    let days = time.div_euclid(86_400_000_000_000) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, day) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (951_782_400, "2000-02-29"),
            (1_709_251_199, "2024-02-29"),
            (1_795_824_000, "2026-11-28"),
        ] {
            assert_eq!(date_text(seconds * 1_000_000_000), day);
        }
    }
}
