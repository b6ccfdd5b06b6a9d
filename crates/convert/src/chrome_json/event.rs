//! One event of a file.

use serde_json::{Map, Value};

/// Number or text that names a process or a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    Number(u32),
    Text(String),
}

/// Scope of an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Global,
    Process,
    Thread,
}

/// Direction of a flow that is bound to its slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) id: u64,
    pub(super) is_in: bool,
    pub(super) is_out: bool,
}

#[derive(Debug)]
pub(super) struct Event {
    pub(super) phase: char,
    pub(super) ts: Option<i64>,
    pub(super) dur: Option<i64>,
    pub(super) thread_ts: Option<i64>,
    pub(super) thread_dur: Option<i64>,
    pub(super) pid: Owner,
    pub(super) tid: Owner,
    pub(super) name: String,
    pub(super) category: String,
    pub(super) id: Option<u64>,
    /// The id as it is written, if it is a text.
    pub(super) id_text: Option<String>,
    /// The id is only unique in its process.
    pub(super) is_local: bool,
    pub(super) bound: Option<Bound>,
    pub(super) scope: Scope,
    pub(super) binds_enclosing: bool,
    pub(super) args: Map<String, Value>,
}

impl Event {
    /// Reads an event. Returns `None` if it is no object, or has no phase.
    pub(super) fn parse(json: &[u8]) -> Option<Self> {
        let Ok(Value::Object(mut event)) = serde_json::from_slice(json) else { return None };
        let phase = event.get("ph")?.as_str()?.chars().next()?;
        let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let time = |key: &str| event.get(key).and_then(nanoseconds);
        let flag = |key: &str| event.get(key).and_then(Value::as_bool).unwrap_or(false);
        let pid = owner(event.get("pid"));
        let mut tid = owner(event.get("tid"));
        if tid == Owner::Number(0) {
            tid = pid.clone();
        }
        let id2 = event.get("id2").and_then(Value::as_object);
        let global = id2.and_then(|id2| id2.get("global"));
        let local = id2.and_then(|id2| id2.get("local"));
        let id = event.get("id").or(global).or(local);
        let is_local = event.get("id").or(global).is_none();
        let bound = event.get("bind_id").and_then(number_of_id);
        let bound = bound.map(|id| Bound { id, is_in: flag("flow_in"), is_out: flag("flow_out") });
        let scope = match event.get("s").and_then(Value::as_str) {
            Some("g") => Scope::Global,
            Some("p") => Scope::Process,
            _ => Scope::Thread,
        };
        Some(Self {
            phase,
            ts: time("ts"),
            dur: time("dur"),
            thread_ts: time("tts"),
            thread_dur: time("tdur"),
            pid,
            tid,
            name: text("name"),
            category: text("cat"),
            id: id.and_then(number_of_id),
            id_text: id.and_then(Value::as_str).map(str::to_owned),
            is_local,
            bound,
            scope,
            binds_enclosing: event.get("bp").and_then(Value::as_str) == Some("e"),
            args: match event.remove("args") {
                Some(Value::Object(args)) => args,
                _ => Map::new(),
            },
        })
    }
}

fn owner(value: Option<&Value>) -> Owner {
    match value {
        Some(Value::String(text)) => Owner::Text(text.clone()),
        Some(Value::Number(number)) => {
            let whole = number.as_i64().or_else(|| number.as_f64().map(to_integer));
            Owner::Number(whole.and_then(|number| u32::try_from(number).ok()).unwrap_or(0))
        }
        _ => Owner::Number(0),
    }
}

/// Returns a number for an id: its value, or that of its hexadecimal digits, or a hash of its text.
fn number_of_id(value: &Value) -> Option<u64> {
    if let Value::String(text) = value {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
        return Some(u64::from_str_radix(digits, 16).unwrap_or_else(|_| hash_of(text)));
    }
    value.as_u64().or_else(|| value.as_i64().map(|number| u64::from_ne_bytes(number.to_ne_bytes())))
}

/// Returns a number for a text: equal texts have equal numbers, in every version of this program.
pub(super) fn hash_of(text: &str) -> u64 {
    let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    text.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, hash)
}

/// Converts microseconds: a number, or a text that is one.
fn nanoseconds(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Some(whole.saturating_mul(1000)),
            None => number.as_f64().map(|micros| {
                if micros.trunc() == micros {
                    to_integer(micros).saturating_mul(1000)
                } else {
                    to_integer((micros * 1000.0).round())
                }
            }),
        },
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Number(number)) => nanoseconds(&Value::Number(number)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the integer part, or the nearest integer of the type.
#[allow(clippy::cast_possible_truncation, reason = "it saturates")]
fn to_integer(number: f64) -> i64 {
    number as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_to_nanoseconds() {
        let time = |json: &str| nanoseconds(&serde_json::from_str(json).unwrap());
        assert_eq!(time("5"), Some(5000));
        assert_eq!(time("107.0015"), Some(107_002));
        assert_eq!(time("\"107.25\""), Some(107_250));
        assert_eq!(time("1e30"), Some(i64::MAX));
        assert_eq!([time("null"), time("\"x\""), time("\"\\\"7\\\"\"")], [None; 3]);
    }

    #[test]
    fn ids_of_any_form_have_numbers() {
        let id = |json: &str| number_of_id(&serde_json::from_str(json).unwrap());
        assert_eq!([id("18"), id("\"0x12\""), id("\"12\"")], [Some(18); 3]);
        assert!(id("\"x-1\"").is_some() && id("\"x-1\"") != id("\"x-2\""));
        assert_eq!(id("null"), None);
    }

    #[test]
    fn events_without_a_phase_are_none() {
        for json in ["{}", "[]", "7", "{\"ph\":\"\"}", "{\"ph\":3}", "{\"ph\":\"X\""] {
            assert!(Event::parse(json.as_bytes()).is_none(), "{json}");
        }
        let event = Event::parse(br#"{"ph":"X","pid":3,"args":7,"id2":{"local":"0x5"}}"#).unwrap();
        assert_eq!((event.tid, event.id, event.is_local), (Owner::Number(3), Some(5), true));
    }
}
