//! "Did you mean": the known name that is most like a mistyped one.

/// Longest name for which others are compared.
const MAX_TYPED_CHARS: usize = 100;

/// Returns the known name that is most like `typed`, if one is like it.
#[must_use]
pub fn closest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = typed.chars().count();
    if length > MAX_TYPED_CHARS {
        return None;
    }
    let most = (length / 3).max(1);
    // Each character more or less is a change. A stranger's name may be very long.
    let is_alike = |name: &&str| name.chars().take(length + most + 1).count().abs_diff(length) <= most;
    let near = known
        .into_iter()
        .filter(is_alike)
        .map(|name| (distance(typed, name), name))
        .filter(|(distance, _)| *distance <= most);
    near.min().map(|(_, name)| name)
}

/// Returns the number of characters to insert, remove, replace or swap with the next one.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = core::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_is_recognized() {
        let known = ["net", "render", "track_event"];
        assert_eq!(closest("nett", known), Some("net"));
        assert_eq!(closest("ent", known), Some("net"));
        assert_eq!(closest("track_events", known), Some("track_event"));
        assert_eq!(closest("disk", known), None);
        assert_eq!(closest("x", []), None);
        let long = "x".repeat(10_000_000);
        assert_eq!((closest("x", [&long[..]]), closest(&long, [&long[..]])), (None, None));
    }
}
