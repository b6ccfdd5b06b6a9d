//! URLs of single traces.

/// Returns whether a URL names a file of a trace, by its ending.
pub(crate) fn names_trace(url: &str) -> bool {
    let name = url.rsplit('/').next().unwrap_or_default();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

const ENDINGS: [&str; 12] = [
    ".pftrace",
    ".perfetto-trace",
    ".perfetto",
    ".trace",
    ".pb",
    ".pbtrace",
    ".json",
    ".gz",
    ".zst",
    ".zip",
    ".tar",
    ".tgz",
];
