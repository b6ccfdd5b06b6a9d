//! Names of the counters of `/proc/meminfo`.

use esatto_schema::MeminfoCounters;

/// Returns the name that `/proc/meminfo` has for a counter.
pub(crate) fn meminfo_name(key: MeminfoCounters) -> String {
    match key {
        MeminfoCounters::MEMINFO_ACTIVE_ANON => "Active(anon)".to_owned(),
        MeminfoCounters::MEMINFO_INACTIVE_ANON => "Inactive(anon)".to_owned(),
        MeminfoCounters::MEMINFO_ACTIVE_FILE => "Active(file)".to_owned(),
        MeminfoCounters::MEMINFO_INACTIVE_FILE => "Inactive(file)".to_owned(),
        MeminfoCounters::MEMINFO_SLAB_RECLAIMABLE => "SReclaimable".to_owned(),
        MeminfoCounters::MEMINFO_SLAB_UNRECLAIMABLE => "SUnreclaim".to_owned(),
        MeminfoCounters::MEMINFO_COMMITED_AS => "Committed_AS".to_owned(),
        key => camel_case(key.name().unwrap_or("MEMINFO_UNKNOWN").trim_start_matches("MEMINFO_")),
    }
}

/// Converts `MEM_TOTAL` into `MemTotal`, the usual form in `/proc/meminfo`.
fn camel_case(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        format!("{first}{}", rest.to_ascii_lowercase())
    });
    words.collect()
}
