//! Suggestions for misspelt or misplaced names.

use std::collections::{HashSet, VecDeque};

use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};

/// Depth below a message at which a misplaced field is searched, and the number of searched
/// messages.
const MAX_DEPTH: usize = 4;
const MAX_VISITED: usize = 400;
/// Largest number of enum values that an error lists.
const MAX_LISTED: usize = 8;
/// Longest name that is compared, because the comparison takes quadratic time.
const MAX_COMPARED: usize = 64;

/// Returns a clause for the error about field `name` in the last message of `path`; may be empty.
pub(crate) fn field(path: &[MessageDescriptor], name: &str) -> String {
    let Some((here, outer)) = path.split_last() else { return String::new() };
    let spelled = closest(name, here.fields().map(|field| field.name().to_owned()));
    if let Some((field, 0..=2)) = &spelled {
        return format!("; did you mean \"{field}\"?");
    }
    if let Some(message) = outer.iter().rev().find(|message| message.get_field_by_name(name).is_some()) {
        return format!("; it is a field of {}, outside of this message", message.name());
    }
    match (spelled, below(here, name)) {
        (Some((field, _)), Some(inside)) => format!("; did you mean \"{field}\", or the field of {inside}?"),
        (Some((field, _)), None) => format!("; did you mean \"{field}\"?"),
        (None, Some(inside)) => format!("; it is a field of {inside}"),
        (None, None) => String::new(),
    }
}

/// Returns a clause for the error about the enum value `name`.
pub(crate) fn enum_value(of: &EnumDescriptor, name: &str) -> String {
    if of.values().len() <= MAX_LISTED {
        // Use the order of the declaration: values() is sorted by number.
        let names: Vec<_> = of.enum_descriptor_proto().value.iter().map(|value| value.name().to_owned()).collect();
        return format!("; expected {}", or_list(&names));
    }
    match closest(name, of.values().map(|value| value.name().to_owned())) {
        Some((value, _)) => format!("; did you mean {value}?"),
        None => String::new(),
    }
}

fn or_list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// Returns the candidate most similar to `name` and its distance, if one is similar enough.
fn closest(name: &str, candidates: impl Iterator<Item = String>) -> Option<(String, usize)> {
    if name.len() > MAX_COMPARED {
        return None;
    }
    let name = name.to_ascii_lowercase();
    candidates
        .filter_map(|candidate| {
            let lower = candidate.to_ascii_lowercase();
            let part = name.len() >= 4 && lower.len() >= 4 && (lower.contains(&name) || name.contains(&lower));
            let distance = distance(name.as_bytes(), lower.as_bytes());
            let limit = name.len().max(lower.len()) / 3;
            // A name that is a part of the other one has a large distance: a misspelling is a
            // better match.
            if distance <= limit { Some((candidate, distance)) } else { part.then(|| (candidate, limit + distance)) }
        })
        .min_by_key(|(_, distance)| *distance)
}

/// Finds the field `name` below `top`, as `M (a { b { … } })`.
fn below(top: &MessageDescriptor, name: &str) -> Option<String> {
    let mut seen = HashSet::from([top.full_name().to_owned()]);
    let mut queue: VecDeque<(MessageDescriptor, Vec<FieldDescriptor>)> = VecDeque::from([(top.clone(), Vec::new())]);
    while let Some((message, way)) = queue.pop_front() {
        for field in message.fields() {
            let Kind::Message(inner) = field.kind() else { continue };
            if seen.len() >= MAX_VISITED || !seen.insert(inner.full_name().to_owned()) {
                continue;
            }
            let mut way = way.clone();
            way.push(field);
            if inner.get_field_by_name(name).is_some() {
                let open: String = way.iter().map(|field| format!("{} {{ ", field.name())).collect();
                return Some(format!("{}: {open}{name} …{}", inner.name(), " }".repeat(way.len())));
            }
            if way.len() < MAX_DEPTH {
                queue.push_back((inner, way));
            }
        }
    }
    None
}

/// Returns the number of inserted, deleted, replaced or swapped bytes between two names.
fn distance(a: &[u8], b: &[u8]) -> usize {
    if b.len() > MAX_COMPARED {
        return usize::MAX / 2;
    }
    let mut before = vec![0; b.len() + 1];
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, &y) in b.iter().enumerate() {
            let replaced = previous[j] + usize::from(x != y);
            let mut best = replaced.min(previous[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = previous;
        previous = row;
    }
    previous[b.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn a_swap_counts_once() {
        assert_eq!(distance(b"size_kb", b"size_bk"), 1);
        assert_eq!(distance(b"", b"abc"), 3);
        assert_eq!(distance(b"buffers", b"bufers"), 1);
    }
}
