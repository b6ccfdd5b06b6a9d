//! Hard reset of ftrace (`docs/spec/probes.md` §3), for users whose machine another program has
//! left in disorder.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

/// Folders in which tracefs may be mounted.
pub(crate) const MOUNT_POINTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Resets ftrace at the first of these mount points where that is possible.
///
/// # Errors
///
/// A line that says what failed at the first one, and what to do.
pub(crate) fn reset_ftrace(mount_points: &[&str]) -> Result<(), String> {
    let mut first_error = None;
    for mount in mount_points {
        match reset(Path::new(mount)) {
            Ok(()) => return Ok(()),
            Err(why) => _ = first_error.get_or_insert(why),
        }
    }
    let why = first_error.unwrap_or_default();
    Err(format!("cannot reset ftrace: {why}; run as root, or run `sudo chown -R $USER /sys/kernel/tracing`"))
}

fn reset(mount: &Path) -> Result<(), String> {
    let write = |file: &str, value: &str| {
        let path = mount.join(file);
        let failed = |why: io::Error| format!("cannot write {}: {why}", path.display());
        let mut file = OpenOptions::new().write(true).truncate(true).open(&path).map_err(failed)?;
        file.write_all(value.as_bytes()).map_err(failed)
    };
    write("tracing_on", "0")?;
    write("buffer_size_kb", "4")?;
    // The truncation empties it.
    write("trace", "")?;
    for (file, value) in [("events/enable", "0"), ("events/raw_syscalls/filter", "0"), ("current_tracer", "nop")] {
        if let Err(why) = write(file, value) {
            log::debug!("{why}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_reset_turns_off_everything_at_the_first_mount_point_that_allows_it() {
        let folder = std::env::temp_dir().join(format!("esatto-reset-{}", std::process::id()));
        fs::create_dir_all(folder.join("events")).unwrap();
        for (file, value) in [("tracing_on", "1"), ("buffer_size_kb", "8192"), ("trace", "x"), ("events/enable", "1")] {
            fs::write(folder.join(file), value).unwrap();
        }
        fs::write(folder.join("current_tracer"), "function_graph").unwrap();
        let there = folder.to_str().unwrap();
        assert_eq!(reset_ftrace(&["/nowhere", there]), Ok(()));
        let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
        assert_eq!(
            ["tracing_on", "buffer_size_kb", "trace", "events/enable", "current_tracer"].map(read),
            ["0", "4", "", "0", "nop"]
        );
        let error = reset_ftrace(&["/nowhere"]).unwrap_err();
        assert!(error.contains("/nowhere/tracing_on") && error.contains("sudo chown"), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }
}
