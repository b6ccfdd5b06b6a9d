//! The table of the kernel's events in `crates/probes`, from its list of events and the schema.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The list of events: `GROUP/NAME NUMBER`.
const EVENTS: &str = "crates/probes/ftrace_events.txt";
/// All fields of Perfetto's messages.
const SCHEMA: &str = "crates/schema/schema.tsv";
/// The generated table.
const TABLE: &str = "crates/probes/src/ftrace/event_schema.txt";
/// The message that has a field for each event.
const EVENT_MESSAGE: &str = "FtraceEvent";

/// Generates the table, or with `check` compares. Returns the file if it was not up to date.
pub(crate) fn sync(root: &Path, check: bool) -> Result<Option<PathBuf>, String> {
    let read = |path: &str| fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"));
    let table = table(&read(EVENTS)?, &Messages::parse(&read(SCHEMA)?))?;
    let path = root.join(TABLE);
    if fs::read_to_string(&path).is_ok_and(|present| present == table) {
        return Ok(None);
    }
    if !check {
        fs::write(&path, table).map_err(|error| format!("{TABLE}: {error}"))?;
    }
    Ok(Some(path))
}

/// Fields by message and number.
struct Messages<'a>(BTreeMap<&'a str, BTreeMap<u32, Field<'a>>>);

struct Field<'a> {
    name: &'a str,
    /// Label and type.
    kind: &'a str,
}

impl<'a> Messages<'a> {
    fn parse(schema: &'a str) -> Self {
        let mut messages: BTreeMap<&str, BTreeMap<u32, Field<'_>>> = BTreeMap::new();
        for line in schema.lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            let ["field", _, message, number, name, kind, ..] = columns[..] else { continue };
            if let Ok(number) = number.parse() {
                messages.entry(message).or_default().insert(number, Field { name, kind });
            }
        }
        Self(messages)
    }

    /// Returns the fields of a message; none if it is empty, because the schema lists only fields.
    fn fields(&self, message: &str) -> &BTreeMap<u32, Field<'a>> {
        static NONE: BTreeMap<u32, Field<'_>> = BTreeMap::new();
        self.0.get(message).unwrap_or(&NONE)
    }
}

fn table(events: &str, messages: &Messages<'_>) -> Result<String, String> {
    let mut lines = Vec::new();
    for event in events.lines().filter(|line| !line.starts_with('#')) {
        let malformed = || format!("{EVENTS}: not GROUP/NAME NUMBER: {event}");
        let (path, number) = event.split_once(' ').ok_or_else(malformed)?;
        let (group, name) = path.split_once('/').ok_or_else(malformed)?;
        let number: u32 = number.parse().map_err(|_| malformed())?;
        let unknown = || format!("{EVENTS}: {EVENT_MESSAGE} has no field {number}: {event}");
        let field = messages.fields(EVENT_MESSAGE).get(&number).ok_or_else(unknown)?;
        let message = field.kind.strip_prefix("optional ").unwrap_or(field.kind);
        lines.push((name, group, line(name, group, number, messages.fields(message))?));
    }
    lines.sort();
    if let Some(twice) = lines.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[0].1 == pair[1].1) {
        return Err(format!("{EVENTS}: twice: {}/{}", twice[0].1, twice[0].0));
    }
    Ok(lines.into_iter().map(|(_, _, line)| line).collect())
}

fn line(name: &str, group: &str, number: u32, fields: &BTreeMap<u32, Field<'_>>) -> Result<String, String> {
    let mut line = format!("{name} {group} {number}");
    for (number, Field { name, kind }) in fields {
        let kind = kind.rsplit(' ').next().unwrap_or_default();
        let kind = match kind {
            "int32" | "int64" | "uint32" | "uint64" | "string" | "bytes" => kind,
            _ => return Err(format!("{group}/{name}: no rule for fields of the type {kind}")),
        };
        write!(line, " {name}:{number}:{kind}").map_err(|error| error.to_string())?;
    }
    line.push('\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TSV: &str = "field\tf.proto\tFtraceEvent\t4\tsched_switch\toptional SchedSwitch\t\n\
        field\tf.proto\tSchedSwitch\t2\tprev_pid\toptional int32\t\n\
        field\tf.proto\tSchedSwitch\t1\tprev_comm\toptional string\t\n";

    #[test]
    fn a_line_has_the_fields_of_the_event_in_the_order_of_their_numbers() {
        let table = table("# list\nsched/sched_switch 4\n", &Messages::parse(TSV));
        assert_eq!(table.as_deref(), Ok("sched_switch sched 4 prev_comm:1:string prev_pid:2:int32\n"));
    }

    #[test]
    fn an_event_that_the_schema_does_not_have_is_an_error() {
        let error = table("sched/sched_switch 5\n", &Messages::parse(TSV)).unwrap_err();
        assert!(error.contains("no field 5"), "{error}");
    }
}
