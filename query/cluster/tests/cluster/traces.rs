//! Folders of traces.

use std::path::{Path, PathBuf};

use esatto_schema::FILE_DESCRIPTOR_SET;
use prost_reflect::DescriptorPool;

pub(crate) const EVENTS: &str = "official-v56-track-events.pftrace";
const SMALL: &str = "official-v56-process-and-sys-stats.pftrace";

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a folder can be read").path())
        .filter(|path| path.extension().is_some_and(|own| own == extension))
        .collect();
    files.sort();
    files
}

/// Makes a folder with all traces of the queries: those that real programs wrote, and those that
/// are written by hand as text. Returns its pattern.
pub(crate) fn all(folder: &Path) -> String {
    let tests = crate::root().join("tests");
    for path in files(&tests.join("traces"), "pftrace") {
        std::fs::copy(&path, folder.join(path.file_name().expect("a name"))).expect("a trace can be copied");
    }
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the schema is valid");
    let message = pool.get_message_by_name("perfetto.protos.Trace").expect("the schema has traces");
    for path in files(&tests.join("queries/traces"), "textproto") {
        let text = std::fs::read_to_string(&path).expect("a trace can be read");
        let bytes = esatto_text_format::parse(&message, &text)
            .unwrap_or_else(|errors| panic!("{}: {errors:?}", path.display()));
        let path = folder.join(path.file_stem().expect("a name")).with_extension("pftrace");
        std::fs::write(path, bytes).expect("a trace can be written");
    }
    pattern(folder)
}

/// Makes a folder with copies of a trace that is small; every twentieth is another one.
pub(crate) fn copies(folder: &Path, count: usize) -> String {
    let traces = crate::root().join("tests/traces");
    for number in 0..count {
        let name = if number % 20 == 7 { EVENTS } else { SMALL };
        std::fs::copy(traces.join(name), folder.join(format!("t{number:03}.pftrace"))).expect("a trace can be copied");
    }
    pattern(folder)
}

pub(crate) fn pattern(folder: &Path) -> String {
    format!("{}/*.pftrace", folder.display())
}
