//! The traces on which the queries run.

use std::path::{Path, PathBuf};

use esatto_schema::FILE_DESCRIPTOR_SET;
use prost_reflect::DescriptorPool;

pub(crate) struct Trace {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// Returns the files of a folder with an extension, sorted.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a folder can be read").path())
        .filter(|path| path.extension().is_some_and(|own| own == extension))
        .collect();
    files.sort();
    files
}

/// Returns a trace that is written by hand as text, by its name in `tests/queries`.
pub(crate) fn written(name: &str) -> Trace {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the schema is valid");
    let message = pool.get_message_by_name("perfetto.protos.Trace").expect("the schema has traces");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("queries/{name}.textproto"));
    let text = std::fs::read_to_string(&source).expect("a trace can be read");
    let bytes =
        esatto_text_format::parse(&message, &text).unwrap_or_else(|errors| panic!("{}: {errors:?}", source.display()));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("queries-{}.pftrace", name.replace('/', "-")));
    std::fs::write(&path, bytes).expect("a trace can be written");
    Trace { name: name.to_owned(), path }
}

/// Returns all traces: those that real programs wrote, and those that are written by hand as text.
pub(crate) fn all() -> Vec<Trace> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let name = |path: &Path| path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
    let real = files(&tests.join("traces"), "pftrace");
    let mut traces: Vec<Trace> = real.into_iter().map(|path| Trace { name: name(&path), path }).collect();
    for path in files(&tests.join("queries/traces"), "textproto") {
        traces.push(written(&format!("traces/{}", name(&path))));
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("queries-kernel-track-events.pftrace");
    std::fs::write(&path, crate::kernel_track_events::trace()).expect("a trace can be written");
    traces.push(Trace { name: "kernel track events".to_owned(), path });
    // Further traces that the caller names: tests/README.md.
    let more = std::env::var_os("ESATTO_QUERY_TRACES");
    for path in more.iter().flat_map(std::env::split_paths) {
        traces.push(Trace { name: name(&path), path });
    }
    traces
}
