//! Traces and archives, also hostile ones, as the commands open them.

mod archives_are_read;
mod hostile_archives;
mod manifests_place_traces;

use std::fs::File;
use std::io::{Cursor, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use esatto_protozero::HeapBuffer;
use esatto_schema::{TracePacketWriter, track_event};
use zip::write::{SimpleFileOptions, ZipWriter};
use zip::{CompressionMethod, DateTime};

/// A folder that is removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("esatto-inputs-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        File::create(&path).unwrap().write_all(bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const BOOTTIME: u32 = 6;
const REALTIME: u32 = 1;

/// A trace that is made by hand.
#[derive(Default)]
struct Trace(Vec<u8>);

impl Trace {
    fn packet(mut self, machine: u32, write: impl FnOnce(&mut TracePacketWriter<'_>)) -> Self {
        let mut buffer = HeapBuffer::new();
        let mut message = buffer.message();
        let mut packet = TracePacketWriter::from(message.begin(1));
        packet.trusted_packet_sequence_id(2);
        if machine != 0 {
            packet.machine_id(machine);
        }
        write(&mut packet);
        drop(packet);
        drop(message);
        self.0.extend(buffer.to_vec());
        self
    }

    /// Adds values of clocks at one moment.
    fn clocks(self, clocks: &[(u32, u64)]) -> Self {
        self.packet(0, |packet| {
            let mut snapshot = packet.clock_snapshot();
            for &(id, ticks) in clocks {
                snapshot.clocks().clock_id(id).timestamp(ticks);
            }
        })
    }

    fn instant(self, ts: u64, name: &str) -> Self {
        self.instant_of(0, ts, name)
    }

    fn instant_of(self, machine: u32, ts: u64, name: &str) -> Self {
        self.packet(machine, |packet| {
            packet.timestamp(ts);
            packet.track_event().r#type(track_event::Type::TYPE_INSTANT).name(name);
        })
    }
}

/// Makes a zip archive.
fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default());
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Makes a tar archive.
fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, name, *bytes).unwrap();
    }
    archive.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// Returns the names and times of all slices.
fn slices(engine: &esatto_trace::Engine) -> Vec<(String, i64)> {
    let (slice, strings) = (&engine.tables.slice, &engine.tables.strings);
    let name = |row: usize| slice.name[row].map_or("", |name| strings.get(name)).to_owned();
    (0..slice.name.len()).map(|row| (name(row), slice.ts.get(row))).collect()
}
