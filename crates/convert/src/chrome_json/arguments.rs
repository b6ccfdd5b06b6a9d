//! Arguments as JSON: flat keys such as `debug.list[0].name` become lists and dictionaries again.

use std::collections::BTreeMap;

use esatto_trace::Strings;
use esatto_trace::tables::{Arg, ArgValue};
use serde_json::{Map, Value};

/// Arguments that name rows of tables, which a file has not.
const ROWS: &str = "legacy_event.passthrough_utid";
/// Steps of a key that become nested values. Deeper ones stay one key, because readers of JSON
/// accept some hundred levels.
const MAX_KEY_STEPS: usize = 64;

/// A value that is being put together.
#[derive(Debug)]
enum Node {
    Leaf(Value),
    Dictionary(BTreeMap<String, Self>),
    List(BTreeMap<u64, Self>),
}

/// A step of a key.
#[derive(Debug, Clone, Copy)]
enum Step<'k> {
    Name(&'k str),
    Index(u64),
}

/// Returns arguments as a dictionary. The prefix `debug.`, which the tables add, is left out.
pub(super) fn to_json(args: &[Arg], strings: &Strings) -> Map<String, Value> {
    let mut root = BTreeMap::new();
    let mut whole = Map::new();
    for arg in args {
        let full = strings.get(arg.key);
        if full == ROWS {
            continue;
        }
        let key = full.strip_prefix("debug.").or_else(|| full.strip_prefix("args.")).unwrap_or(full);
        let value = to_value(arg.value, strings);
        let placed = match steps(key) {
            Some(steps) => insert(&mut root, &steps, value),
            None => Err(value),
        };
        // A key that does not fit to the others stays as it is.
        if let Err(value) = placed {
            whole.insert(key.to_owned(), value);
        }
    }
    for (key, node) in root {
        whole.insert(key, node.into_value());
    }
    whole
}

fn to_value(value: ArgValue, strings: &Strings) -> Value {
    match value {
        ArgValue::Int(v) => v.into(),
        ArgValue::Uint(v) => v.into(),
        ArgValue::Bool(v) => v.into(),
        // JSON has no infinity.
        ArgValue::Real(v) if !v.is_finite() => v.to_string().into(),
        ArgValue::Real(v) => v.into(),
        ArgValue::Text(text) => text.map_or(Value::Null, |text| strings.get(text).into()),
        ArgValue::Pointer(v) => format!("{v:#x}").into(),
        ArgValue::Json(text) => {
            let text = strings.get(text);
            serde_json::from_str(text).unwrap_or_else(|_| text.into())
        }
        _ => Value::Null,
    }
}

/// Splits a key. Returns `None` if it has not the form of those that the tables make.
fn steps(key: &str) -> Option<Vec<Step<'_>>> {
    let mut steps = Vec::new();
    for part in key.split('.') {
        let (name, mut rest) = part.find('[').map_or((part, ""), |at| part.split_at(at));
        if name.is_empty() {
            return None;
        }
        steps.push(Step::Name(name));
        while let Some(inside) = rest.strip_prefix('[') {
            let (index, after) = inside.split_once(']')?;
            steps.push(Step::Index(index.parse().ok()?));
            rest = after;
        }
        if !rest.is_empty() || steps.len() > MAX_KEY_STEPS {
            return None;
        }
    }
    Some(steps)
}

/// Puts a value at a place. Gives it back if there is something else.
fn insert(root: &mut BTreeMap<String, Node>, steps: &[Step<'_>], value: Value) -> Result<(), Value> {
    let Some((Step::Name(first), mut steps)) = steps.split_first() else { return Err(value) };
    let Some((next, _)) = steps.split_first() else {
        if root.contains_key(*first) {
            return Err(value);
        }
        root.insert((*first).to_owned(), Node::Leaf(value));
        return Ok(());
    };
    let mut node = root.entry((*first).to_owned()).or_insert_with(|| Node::of(*next));
    loop {
        let Some((step, rest)) = steps.split_first() else { return Err(value) };
        let make = |value: Value| match rest.first() {
            None => Node::Leaf(value),
            Some(next) => Node::of(*next),
        };
        let is_last = rest.is_empty();
        node = match (node, step) {
            (Node::Dictionary(entries), Step::Name(name)) => {
                if is_last && entries.contains_key(*name) {
                    return Err(value);
                }
                if is_last {
                    entries.insert((*name).to_owned(), make(value));
                    return Ok(());
                }
                entries.entry((*name).to_owned()).or_insert_with(|| make(Value::Null))
            }
            (Node::List(entries), Step::Index(index)) => {
                if is_last && entries.contains_key(index) {
                    return Err(value);
                }
                if is_last {
                    entries.insert(*index, make(value));
                    return Ok(());
                }
                entries.entry(*index).or_insert_with(|| make(Value::Null))
            }
            _ => return Err(value),
        };
        steps = rest;
    }
}

impl Node {
    /// Makes the empty value that has a place for this step.
    fn of(step: Step<'_>) -> Self {
        match step {
            Step::Name(_) => Self::Dictionary(BTreeMap::new()),
            Step::Index(_) => Self::List(BTreeMap::new()),
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Leaf(value) => value,
            Self::Dictionary(entries) => {
                Value::Object(entries.into_iter().map(|(key, node)| (key, node.into_value())).collect())
            }
            Self::List(entries) => {
                let is_whole = entries.keys().copied().eq(0..entries.len() as u64);
                if is_whole {
                    Value::Array(entries.into_values().map(Self::into_value).collect())
                } else {
                    Value::Object(entries.into_iter().map(|(at, node)| (at.to_string(), node.into_value())).collect())
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(keys: &[&str]) -> String {
        let mut root = BTreeMap::new();
        let mut refused = Vec::new();
        for (value, key) in keys.iter().enumerate() {
            let placed = steps(key).is_some_and(|steps| insert(&mut root, &steps, value.into()).is_ok());
            refused.extend((!placed).then_some(*key));
        }
        let values: Map<String, Value> = root.into_iter().map(|(key, node)| (key, node.into_value())).collect();
        format!("{} {}", Value::Object(values), refused.join(","))
    }

    #[test]
    fn flat_keys_become_lists_and_dictionaries() {
        assert_eq!(nested(&["a", "b.c", "b.d[0]", "b.d[1].e"]), r#"{"a":0,"b":{"c":1,"d":[2,{"e":3}]}} "#);
        assert_eq!(nested(&["m[0][1]", "m[0][0]"]), r#"{"m":[[1,0]]} "#);
    }

    #[test]
    fn keys_that_do_not_fit_are_kept_whole() {
        assert_eq!(
            nested(&["a", "a.b", "a", "x[", "x]", "[0]", "", "y.", "z[0]q"]),
            r#"{"a":0,"x]":4} a.b,a,x[,[0],,y.,z[0]q"#
        );
        // A list of which only a far element is there costs no memory.
        assert_eq!(nested(&["l[4000000000]"]), r#"{"l":{"4000000000":0}} "#);
    }
}
