//! Archives of traces, with a manifest.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write};
use std::path::{Path, PathBuf};

use esatto_trace::{AttributeValue, MergePlan, clock_name};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

/// The usual name of a manifest.
const MANIFEST: &str = "perfetto_manifest.json";

/// Kind of an archive that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArchiveKind {
    /// A zip archive.
    Zip,
    /// A tar archive.
    Tar,
    /// A tar archive that is compressed with gzip.
    TarGz,
}

impl ArchiveKind {
    /// Returns the kind of a file of this name; none if it is no archive.
    pub fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let ends = |ending: &str| name.ends_with(ending);
        match () {
            () if ends(".zip") => Some(Self::Zip),
            () if ends(".tar") => Some(Self::Tar),
            () if ends(".tar.gz") || ends(".tgz") => Some(Self::TarGz),
            () => None,
        }
    }
}

/// A file of an archive that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveFile {
    /// Its name in the archive, to which the manifest refers.
    pub name: String,
    /// The file whose bytes it has.
    pub path: PathBuf,
}

/// Writes an archive of files, with the manifest first. The files stay as they are.
///
/// # Errors
///
/// A file cannot be read, changes its size, or `out` fails.
pub fn write_archive(
    kind: ArchiveKind,
    files: &[ArchiveFile],
    plan: &MergePlan,
    out: &mut dyn Write,
) -> io::Result<()> {
    match kind {
        ArchiveKind::Zip => write_zip(files, plan, out),
        ArchiveKind::Tar => write_tar(files, plan, out),
        ArchiveKind::TarGz => {
            let mut gzip = GzEncoder::new(out, Compression::default());
            write_tar(files, plan, &mut gzip)?;
            gzip.finish().map(|_| ())
        }
    }
}

fn write_zip(files: &[ArchiveFile], plan: &MergePlan, out: &mut dyn Write) -> io::Result<()> {
    // Sizes are written before the data when they are known: a place for that needs a seek.
    let mut zip = ZipWriter::new(BufWriter::new(tempfile::tempfile()?));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated).large_file(false);
    zip.start_file(MANIFEST, options).map_err(io::Error::other)?;
    zip.write_all(manifest_text(plan).as_bytes())?;
    for file in files {
        let content = File::open(&file.path)?;
        let is_large = content.metadata()?.len() >= u64::from(u32::MAX);
        zip.start_file(&file.name, options.large_file(is_large)).map_err(io::Error::other)?;
        io::copy(&mut BufReader::new(content), &mut zip)?;
    }
    let mut written = zip.finish().map_err(io::Error::other)?.into_inner().map_err(io::IntoInnerError::into_error)?;
    written.rewind()?;
    io::copy(&mut written, out).map(|_| ())
}

fn write_tar(files: &[ArchiveFile], plan: &MergePlan, out: &mut dyn Write) -> io::Result<()> {
    let mut tar = tar::Builder::new(out);
    let header = |size: u64| {
        let mut header = tar::Header::new_gnu();
        header.set_size(size);
        header.set_mode(0o600);
        header
    };
    let manifest = manifest_text(plan);
    tar.append_data(&mut header(manifest.len() as u64), MANIFEST, manifest.as_bytes())?;
    for file in files {
        let content = File::open(&file.path)?;
        let size = content.metadata()?.len();
        let mut content = Whole { content: BufReader::new(content).take(size), left: size };
        tar.append_data(&mut header(size), &file.name, &mut content)?;
    }
    tar.into_inner().map(|_| ())
}

/// A file that must have all the bytes that its header announces.
struct Whole<R> {
    content: R,
    left: u64,
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read(buffer)?;
        self.left = self.left.saturating_sub(read as u64);
        if read == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it became shorter while it was read"));
        }
        Ok(read)
    }
}

/// Returns the text of a manifest.
pub fn manifest_text(plan: &MergePlan) -> String {
    let clock = |id: u32| clock_name(id).unwrap_or_default();
    let mut manifest = Map::new();
    manifest.insert("version".to_owned(), json!(1));
    if let Some(time) = &plan.trace_time {
        let mut object = Map::from_iter([("clock".to_owned(), json!(clock(time.clock)))]);
        object.extend(time.file.iter().map(|file| ("file".to_owned(), json!(file))));
        object.extend(time.machine.iter().map(|machine| ("machine".to_owned(), json!(machine))));
        manifest.insert("trace_time".to_owned(), object.into());
    }
    let file = |rules: &esatto_trace::FileRules| {
        let mut object = Map::from_iter([("path".to_owned(), json!(rules.path))]);
        object.extend(rules.machine.iter().map(|name| ("machine".to_owned(), json!({ "name": name }))));
        if !rules.machines.is_empty() {
            let machines = rules.machines.iter().map(|(id, name)| json!({ "id": id, "name": name }));
            object.insert("machines".to_owned(), machines.collect());
        }
        if let Some(rule) = &rules.clocks {
            let mut to = Map::from_iter([("file".to_owned(), json!(rule.to_file))]);
            to.extend(rule.to_machine.iter().map(|machine| ("machine".to_owned(), json!(machine))));
            to.extend(rule.to_clock.map(|id| ("clock".to_owned(), json!(clock(id)))));
            let mut clocks = Map::from_iter([("sync_to".to_owned(), Value::from(to))]);
            clocks.extend(rule.machine.iter().map(|machine| ("machine".to_owned(), json!(machine))));
            clocks.extend(rule.clock.map(|id| ("clock".to_owned(), json!(clock(id)))));
            clocks.insert("offset_ns".to_owned(), json!(rule.offset_ns));
            object.insert("clocks".to_owned(), clocks.into());
        }
        Value::from(object)
    };
    manifest.insert("files".to_owned(), plan.files.iter().map(file).collect());
    if !plan.attributes.is_empty() {
        let value = |value: &AttributeValue| match value {
            AttributeValue::Number(number) => json!(number),
            AttributeValue::Text(text) => json!(text),
        };
        let attributes = plan.attributes.iter().map(|(key, attribute)| (key.clone(), value(attribute)));
        manifest.insert("attributes".to_owned(), Value::Object(attributes.collect()));
    }
    format!("{:#}\n", json!({ "perfetto_manifest": manifest }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use esatto_trace::{ClockRule, FileRules, TraceTime};

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let mut relay = FileRules::new("relay.pftrace");
        relay.machines = vec![(0, "host".to_owned()), (u32::MAX, "vm \"1\"".to_owned())];
        let mut watch = FileRules::new("x/watch");
        watch.machine = Some("watch".to_owned());
        watch.clocks = Some(ClockRule {
            machine: None,
            clock: Some(6),
            to_file: "relay.pftrace".to_owned(),
            to_machine: Some("host".to_owned()),
            to_clock: Some(1),
            offset_ns: -7,
        });
        let mut plan = MergePlan::default();
        plan.trace_time = Some(TraceTime { clock: 6, file: Some("x/watch".to_owned()), machine: None });
        plan.files = vec![relay, watch];
        plan.attributes = vec![
            ("n".to_owned(), AttributeValue::Number(i64::MIN)),
            ("t".to_owned(), AttributeValue::Text("ü".to_owned())),
        ];
        let text = manifest_text(&plan);
        assert_eq!(crate::read_manifest(text.as_bytes()).unwrap(), plan, "{text}");
        assert_eq!(crate::FileKind::of(text.as_bytes()), crate::FileKind::Manifest);
    }
}
