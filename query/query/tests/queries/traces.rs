//! The traces on which the queries run.

use std::path::{Path, PathBuf};

use esatto_schema::FILE_DESCRIPTOR_SET;
use prost_reflect::DescriptorPool;

pub(crate) struct Trace {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a folder can be read").path())
        .filter(|path| path.extension().is_some_and(|own| own == extension))
        .collect();
    files.sort();
    files
}

/// Returns all traces: those that real programs wrote, and those that are written by hand as text.
pub(crate) fn all() -> Vec<Trace> {
    let tests = crate::root().join("tests");
    let name = |path: &Path| path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
    let real = files(&tests.join("traces"), "pftrace");
    let mut traces: Vec<Trace> = real.into_iter().map(|path| Trace { name: name(&path), path }).collect();
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the schema is valid");
    let message = pool.get_message_by_name("perfetto.protos.Trace").expect("the schema has traces");
    for path in files(&tests.join("queries/traces"), "textproto") {
        let text = std::fs::read_to_string(&path).expect("a trace can be read");
        let bytes = esatto_text_format::parse(&message, &text)
            .unwrap_or_else(|errors| panic!("{}: {errors:?}", path.display()));
        let name = name(&path);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("queries-{name}.pftrace"));
        std::fs::write(&path, bytes).expect("a trace can be written");
        traces.push(Trace { name, path });
    }
    // Further traces that the caller names: tests/README.md.
    let more = std::env::var_os("ESATTO_QUERY_TRACES");
    for path in more.iter().flat_map(std::env::split_paths) {
        traces.push(Trace { name: name(&path), path });
    }
    traces
}
