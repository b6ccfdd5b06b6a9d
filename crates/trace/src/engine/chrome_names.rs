//! Names of the kinds of processes and threads that Chromium has.

use hashbrown::HashMap;
use std::sync::OnceLock;

/// Lines of `process` or `thread`, a number of Chromium's enumeration, and a name.
const NAMES: &str = include_str!("chrome_names.txt");

fn names() -> &'static HashMap<(&'static str, i64), &'static str> {
    static TABLE: OnceLock<HashMap<(&'static str, i64), &'static str>> = OnceLock::new();
    let entry = |line: &'static str| {
        let mut parts = line.splitn(3, ' ');
        let (kind, number, name) = (parts.next()?, parts.next()?, parts.next()?);
        Some(((kind, number.parse().ok()?), name))
    };
    TABLE.get_or_init(|| NAMES.lines().filter_map(entry).collect())
}

/// Returns the name of processes of a type.
pub(super) fn process(kind: i64) -> Option<&'static str> {
    names().get(&("process", kind)).copied()
}

/// Returns the name of threads of a type.
pub(super) fn thread(kind: i64) -> Option<&'static str> {
    names().get(&("thread", kind)).copied()
}

#[cfg(test)]
mod tests {
    use super::{NAMES, names, process, thread};

    #[test]
    fn each_kind_has_one_name() {
        assert_eq!(names().len(), NAMES.lines().count());
        assert_eq!((process(1), thread(15)), (Some("Browser"), Some("CrBrowserMain")));
        assert_eq!((process(0), thread(-1)), (None, None));
    }
}
