//! Names of trace files that this program chooses.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Returns the names of new traces of `program` at this moment, best first.
pub(super) fn default_names(program: &str) -> impl Iterator<Item = PathBuf> {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // A name may have any characters but these.
    let program: String = program.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c }).collect();
    let first = PathBuf::from(format!("{program}-{}.pftrace", utc(since_epoch.as_secs())));
    std::iter::successors(Some(first), |name| Some(next_name(name)))
}

/// Returns `x-2.pftrace` after `x.pftrace`, then `x-3.pftrace`.
pub(super) fn next_name(name: &Path) -> PathBuf {
    let extension = name.extension().map_or_else(String::new, |extension| format!(".{}", extension.to_string_lossy()));
    let stem = name.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // The date has two dashes of its own.
    let (base, number) = match stem.rsplit_once('-') {
        Some((base, number)) if number.len() < 6 => (base, number.parse().unwrap_or(1)),
        _ => (stem.as_str(), 1),
    };
    name.with_file_name(format!("{base}-{}{extension}", number + 1))
}

/// Formats a time in UTC as `20261123-092632`.
fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86400, seconds % 86400);
    // Years begin in March here, so that a leap day is the last one of its year.
    let (era, day) = ((days + 719_468) / 146_097, (days + 719_468) % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}{month:02}{day:02}-{:02}{:02}{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// Returns a hidden name, in the folder of `target`, that no file has.
pub(super) fn name_beside(target: &Path) -> io::Result<PathBuf> {
    let mut random = [0; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{:016x}", u64::from_ne_bytes(random)));
    Ok(target.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_name_has_program_and_date_and_is_never_taken_twice() {
        assert_eq!(utc(0), "19700101-000000");
        assert_eq!(utc(951_782_399), "20000228-235959");
        assert_eq!(utc(951_782_400), "20000229-000000");
        assert_eq!(utc(1_795_425_992), "20261123-092632");
        assert_eq!(next_name(Path::new("a/x-20261123-092632.pftrace")), Path::new("a/x-20261123-092632-2.pftrace"));
        assert_eq!(next_name(Path::new("x-20261123-092632-9.pftrace")), Path::new("x-20261123-092632-10.pftrace"));
    }
}
