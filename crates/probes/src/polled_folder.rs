//! [`PolledFolder`]: a folder of sysfs whose entries may come and go.

use core::time::Duration;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::data_source::Monotonic;
use crate::polled_file::log_unreadable;

/// Entries of a folder that are looked at: more than a machine has CPUs or devices.
const MAX_ENTRIES: usize = 8192;
/// How long a list of entries is used before the folder is listed again.
const LIST_PERIOD: Duration = Duration::from_secs(30);

/// A folder of sysfs whose entries may come and go. It is listed every 30 seconds.
#[derive(Debug)]
pub(crate) struct PolledFolder {
    path: PathBuf,
    /// Tells which entries count.
    is_wanted: fn(&str) -> bool,
    names: Vec<String>,
    next: Monotonic,
    /// The data that the trace lacks without the folder, for the log. Empty: failures are not
    /// logged.
    missing: &'static str,
    is_logged: bool,
}

impl PolledFolder {
    /// `missing` says in the log what the trace lacks if the folder cannot be read. If it is empty,
    /// nothing is logged.
    pub(crate) fn new(path: PathBuf, is_wanted: fn(&str) -> bool, missing: &'static str) -> Self {
        Self { path, is_wanted, names: Vec::new(), next: Duration::ZERO, missing, is_logged: false }
    }

    /// Lists the folder if it is time. Returns true if the entries differ from the last ones.
    pub(crate) fn refresh(&mut self, now: Monotonic) -> bool {
        if now < self.next {
            return false;
        }
        self.next = now + LIST_PERIOD;
        let names = list(&self.path, self.is_wanted).unwrap_or_else(|error| {
            if !self.is_logged && !self.missing.is_empty() {
                self.is_logged = true;
                let error = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                log_unreadable(&self.path, error, self.missing);
            }
            Vec::new()
        });
        let is_changed = names != self.names;
        self.names = names;
        is_changed
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the names of the entries: those that end with a number in the order of the numbers.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}

/// Lists the entries of a folder that are wanted, and UTF-8: those that end with a number in the
/// order of the numbers.
pub(crate) fn list(path: &Path, is_wanted: impl Fn(&str) -> bool) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path)?.take(MAX_ENTRIES) {
        let name = entry?.file_name().into_string();
        names.extend(name.ok().filter(|name| is_wanted(name)));
    }
    names.sort_unstable_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    Ok(names)
}

/// Returns the number behind `prefix`, if `name` consists of both. So `cpu12` is a CPU, and
/// `cpufreq` is none.
pub(crate) fn numbered(name: &str, prefix: &str) -> Option<u32> {
    let number = name.strip_prefix(prefix)?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())?
}

/// Splits a name before the number at its end.
fn sort_key(name: &str) -> (&str, Option<u64>, &str) {
    let text = name.trim_end_matches(|char: char| char.is_ascii_digit());
    (text, name[text.len()..].parse().ok(), name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;

    #[test]
    fn entries_are_in_the_order_of_their_numbers() {
        let folder = TestFolder::new();
        for name in ["cpu10", "cpu9", "cpu0", "cpufreq", "online"] {
            folder.write(name, "");
        }
        let names = list(&folder.path(""), |name| name.starts_with("cpu")).expect("a folder");
        assert_eq!(names, ["cpu0", "cpu9", "cpu10", "cpufreq"]);
        let cpus: Vec<_> = names.iter().filter_map(|name| numbered(name, "cpu")).collect();
        assert_eq!(cpus, [0, 9, 10]);
        assert_eq!((numbered("cpu", "cpu"), numbered("cpu+1", "cpu")), (None, None));
    }

    #[test]
    fn entries_that_appear_are_found_after_half_a_minute() {
        let folder = TestFolder::new();
        folder.write("zone0", "");
        let mut polled = PolledFolder::new(folder.path(""), |_| true, "");
        assert!(polled.refresh(Duration::from_secs(100)));
        folder.write("zone1", "");
        assert!(!polled.refresh(Duration::from_secs(129)));
        assert!(polled.refresh(Duration::from_secs(130)));
        assert_eq!(polled.names(), ["zone0", "zone1"]);
        assert!(!polled.refresh(Duration::from_secs(160)), "listed, but nothing is new");
    }

    #[test]
    fn a_folder_that_does_not_exist_is_empty() {
        let mut polled = PolledFolder::new(PathBuf::from("/does/not/exist"), |_| true, "");
        assert!(!polled.refresh(Duration::from_secs(1)));
        assert!(polled.names().is_empty());
    }
}
