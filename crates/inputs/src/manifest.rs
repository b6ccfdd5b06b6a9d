//! Manifests: how the traces of an archive become one.
//!
//! The format is Perfetto's, version 1: a JSON object with the key `perfetto_manifest`. Unknown
//! keys are ignored, because later versions may add some.

use esatto_trace::{AttributeValue, ClockRule, FileRules, MergePlan, TraceTime, clock_id};
use serde_json::{Map, Value};

use crate::error::Error;

/// Bytes of a manifest.
pub const MAX_MANIFEST_BYTES: usize = 4 << 20;

/// Reads a manifest, and checks it.
///
/// # Errors
///
/// It is no JSON, or breaks a rule of the format.
pub fn read_manifest(text: &[u8]) -> Result<MergePlan, Error> {
    if text.len() > MAX_MANIFEST_BYTES {
        return Err(Error::Manifest(format!("it has more than {MAX_MANIFEST_BYTES} bytes")));
    }
    let root: Value = serde_json::from_slice(text).map_err(|error| Error::Manifest(error.to_string()))?;
    let plan = root.get("perfetto_manifest").and_then(Value::as_object);
    let plan = plan.ok_or_else(|| Error::Manifest("there is no object perfetto_manifest".to_owned()))?;
    read(plan).and_then(|plan| check(&plan).map(|()| plan)).map_err(Error::Manifest)
}

type Read<T> = Result<T, String>;

fn read(plan: &Map<String, Value>) -> Read<MergePlan> {
    match plan.get("version") {
        None => return Err("the field version is missing".to_owned()),
        Some(version) if version.as_i64() == Some(1) => {}
        Some(version) => return Err(format!("version {version} is not supported, only 1")),
    }
    let mut read = MergePlan::default();
    if let Some(time) = plan.get("trace_time") {
        let time = object(time, "trace_time")?;
        let clock = time.get("clock").ok_or("trace_time: clock is missing")?;
        let [file, machine] = [text(time, "trace_time", "file")?, text(time, "trace_time", "machine")?];
        read.trace_time = Some(TraceTime { clock: clock_of(clock)?, file, machine });
    }
    if let Some(files) = plan.get("files") {
        let files = files.as_array().ok_or("files must be an array")?;
        read.files = files.iter().map(file_rules).collect::<Read<_>>()?;
    }
    if let Some(attributes) = plan.get("attributes") {
        let attributes = attributes.as_object();
        let attributes = attributes.ok_or("attributes must be an object of texts and integers")?;
        for (key, value) in attributes {
            if key.is_empty() {
                return Err("attributes: a key is empty".to_owned());
            }
            let value = match (value.as_i64(), value.as_str()) {
                (Some(number), _) => AttributeValue::Number(number),
                (None, Some(text)) => AttributeValue::Text(text.to_owned()),
                _ => return Err(format!("attributes: {key:?} must be a text or an integer")),
            };
            read.attributes.push((key.clone(), value));
        }
    }
    Ok(read)
}

fn file_rules(file: &Value) -> Read<FileRules> {
    let path = file.get("path").and_then(Value::as_str);
    let mut rules = FileRules::new(without_dot(path.ok_or("files: each entry must be an object with a text path")?));
    if file.get("machine").is_some() && file.get("machines").is_some() {
        return Err(format!("{:?} has machine and machines: only one of them is possible", rules.path));
    }
    if let Some(machine) = file.get("machine") {
        rules.machine = Some(name(machine, "machine")?);
    }
    if let Some(machines) = file.get("machines") {
        for machine in machines.as_array().ok_or("machines must be an array")? {
            let id = machine.get("id").and_then(Value::as_i64).ok_or("machines: each entry must have an integer id")?;
            let id = u32::try_from(id).map_err(|_| format!("machines: {id} is not in [0, 4294967295]"))?;
            let name = name(machine, "machines")?;
            if rules.machines.iter().any(|(other, _)| *other == id) {
                return Err(format!("machines: {id} is named twice"));
            }
            rules.machines.push((id, name));
        }
    }
    if let Some(clocks) = file.get("clocks") {
        rules.clocks = Some(clock_rule(object(clocks, "clocks")?)?);
    }
    Ok(rules)
}

fn clock_rule(clocks: &Map<String, Value>) -> Read<ClockRule> {
    let to = clocks.get("sync_to").ok_or("clocks: sync_to is missing: it names the other trace")?;
    let to = object(to, "clocks: sync_to")?;
    let to_file = text(to, "clocks: sync_to", "file")?.ok_or("clocks: sync_to.file is missing")?;
    let offset_ns = match clocks.get("offset_ns") {
        None => 0,
        Some(offset) => offset.as_i64().ok_or("clocks: offset_ns must be an integer of 64 bits")?,
    };
    if offset_ns == i64::MIN {
        return Err("clocks: offset_ns is out of range".to_owned());
    }
    Ok(ClockRule {
        machine: text(clocks, "clocks", "machine")?,
        clock: clocks.get("clock").map(clock_of).transpose()?,
        to_file: without_dot(&to_file).to_owned(),
        to_machine: text(to, "clocks: sync_to", "machine")?,
        to_clock: to.get("clock").map(clock_of).transpose()?,
        offset_ns,
    })
}

/// Checks references between files.
fn check(plan: &MergePlan) -> Read<()> {
    let mut paths = std::collections::HashMap::new();
    for rules in &plan.files {
        if paths.insert(rules.path.as_str(), rules).is_some() {
            return Err(format!("files: {:?} has two entries", rules.path));
        }
    }
    let reference = |what: &str, path: &str, machine: Option<&str>| -> Read<Option<String>> {
        let Some(rules) = paths.get(path) else {
            return Err(format!("{what} names the unknown file {path:?}; it must be the path of an entry of files"));
        };
        match machine {
            Some(machine) if !rules.declares(machine) => {
                Err(format!("{what}: {machine:?} is not a machine that the file {path:?} declares"))
            }
            Some(machine) => Ok(Some(machine.to_owned())),
            None if !rules.machines.is_empty() => {
                Err(format!("{what}: {path:?} is of several machines; also name the machine"))
            }
            None => Ok(rules.machine.clone()),
        }
    };
    if let Some(time) = &plan.trace_time {
        match (&time.file, &time.machine) {
            (Some(file), machine) => _ = reference("trace_time.file", file, machine.as_deref())?,
            (None, Some(_)) => return Err("trace_time: a machine alone is ambiguous; also name the file".to_owned()),
            (None, None) => {}
        }
    }
    for rules in &plan.files {
        let Some(rule) = &rules.clocks else { continue };
        let own = reference("clocks", &rules.path, rule.machine.as_deref())?;
        let other = reference("clocks: sync_to.file", &rule.to_file, rule.to_machine.as_deref())?;
        let is_itself = match (rule.clock, rule.to_clock) {
            (Some(clock), Some(to)) => clock == to && own == other,
            (None, None) => rules.path == rule.to_file,
            _ => false,
        };
        if is_itself {
            let why = "is related to itself; name different machines with `machine`";
            return Err(format!("clocks: the clock of {:?} {why}", rules.path));
        }
    }
    Ok(())
}

fn object<'v>(value: &'v Value, what: &str) -> Read<&'v Map<String, Value>> {
    value.as_object().ok_or_else(|| format!("{what} must be an object"))
}

/// Returns a text of an object, if it has one.
fn text(object: &Map<String, Value>, what: &str, key: &str) -> Read<Option<String>> {
    match object.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("{what}: {key} must be a text")),
    }
}

fn name(machine: &Value, what: &str) -> Read<String> {
    let name = machine.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| format!("{what}: it must be an object with a text name"))?;
    if name.is_empty() { Err(format!("{what}: the name is empty")) } else { Ok(name.to_owned()) }
}

fn clock_of(name: &Value) -> Read<u32> {
    let text = name.as_str().ok_or("the name of a clock must be a text")?;
    clock_id(text).ok_or_else(|| {
        let known = "REALTIME, REALTIME_COARSE, MONOTONIC, MONOTONIC_COARSE, MONOTONIC_RAW, BOOTTIME";
        format!("{text:?} is no clock; use one of {known}")
    })
}

/// Returns a path without the dot that archives of the current folder have.
pub(crate) fn without_dot(path: &str) -> &str {
    path.trim_start_matches("./")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(inner: &str) -> Result<MergePlan, String> {
        read_manifest(format!("{{\"perfetto_manifest\": {{{inner}}}}}").as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_whole_manifest() {
        let plan = read(
            r#""version": 1, "trace_time": {"clock": "BOOTTIME", "file": "a", "machine": "host"}, "later": {},
            "attributes": {"run": 42, "name": "x"},
            "files": [{"path": "./a", "machines": [{"id": 0, "name": "host"}, {"id": 4294967295, "name": "vm"}]},
              {"path": "b", "machine": {"name": "watch"}, "clocks": {"clock": "REALTIME",
                "sync_to": {"file": "a", "machine": "vm", "clock": "MONOTONIC"}, "offset_ns": -5}},
              {"path": "c.json", "clocks": {"sync_to": {"file": "b", "clock": "BOOTTIME"}}}]"#,
        );
        let plan = plan.unwrap();
        assert_eq!(plan.files[0].machines[1], (u32::MAX, "vm".to_owned()));
        let rule = plan.files[1].clocks.as_ref().unwrap();
        assert_eq!((rule.clock, rule.to_clock, rule.offset_ns), (Some(1), Some(3), -5));
        assert_eq!(plan.files[2].clocks.as_ref().unwrap().clock, None);
        assert_eq!(plan.attributes.len(), 2);
        assert_eq!(read("\"version\": 1").unwrap(), MergePlan::default());
    }

    #[test]
    fn broken_rules_are_named() {
        let file = |inner: &str| format!(r#""version": 1, "files": [{{"path": "a", {inner}}}, {{"path": "b"}}]"#);
        for (text, why) in [
            (String::new(), "version is missing"),
            ("\"version\": 2".to_owned(), "version 2 is not supported"),
            ("\"version\": \"1\"".to_owned(), "not supported"),
            (r#""version": 1, "trace_time": {"clock": "TAI"}"#.to_owned(), "\"TAI\" is no clock"),
            (r#""version": 1, "trace_time": {"clock": "BOOTTIME", "machine": "x"}"#.to_owned(), "also name the file"),
            (r#""version": 1, "files": [{"path": "a"}, {"path": "./a"}]"#.to_owned(), "two entries"),
            (r#""version": 1, "attributes": []"#.to_owned(), "attributes must be"),
            (r#""version": 1, "attributes": {"": 1}"#.to_owned(), "a key is empty"),
            (r#""version": 1, "attributes": {"x": 1.5}"#.to_owned(), "a text or an integer"),
            (file(r#""machine": {"name": ""}"#), "the name is empty"),
            (file(r#""machine": "x""#), "text name"),
            (file(r#""machine": {"name": "x"}, "machines": []"#), "only one of them"),
            (file(r#""machines": [{"id": 4294967296, "name": "x"}]"#), "4294967296 is not in"),
            (file(r#""machines": [{"id": -1, "name": "x"}]"#), "-1 is not in"),
            (file(r#""clocks": {}"#), "sync_to is missing"),
            (file(r#""clocks": {"sync_to": {}}"#), "sync_to.file is missing"),
            (file(r#""clocks": {"sync_to": {"file": "z"}}"#), "unknown file \"z\""),
            (file(r#""clocks": {"sync_to": {"file": "b", "machine": "m"}}"#), "not a machine that the file"),
            (file(r#""clocks": {"sync_to": {"file": "a"}}"#), "related to itself"),
            (file(r#""clocks": {"sync_to": {"file": "b"}, "offset_ns": 0.5}"#), "must be an integer"),
            (file(r#""clocks": {"sync_to": {"file": "b"}, "offset_ns": -9223372036854775808}"#), "out of range"),
            (
                file(r#""machines": [{"id": 0, "name": "x"}], "clocks": {"sync_to": {"file": "b"}}"#),
                "also name the machine",
            ),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.starts_with("perfetto_manifest: ") && error.contains(why), "{text}: {error}");
        }
        assert!(read_manifest(b"{\"perfetto_manifest\"").is_err());
    }
}
