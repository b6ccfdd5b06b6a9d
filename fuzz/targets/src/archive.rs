//! Archives of traces.

use std::fs::File;
use std::io::Write as _;

use esatto_inputs::{Inputs, manifest_text, read_manifest};

/// Traces to which a manifest refers as `a` and `b`.
const TRACES: [(&str, &[u8]); 2] = [
    ("a", include_bytes!("../../corpus/trace_file/hand-made-track-events")),
    ("b", include_bytes!("../../corpus/trace_file/process-and-sys-stats")),
];
/// Bytes of a block of a tar archive.
const BLOCK: usize = 512;

/// A manifest for two traces if it begins like one, else an archive.
pub fn trace_archive(bytes: &[u8]) {
    if !bytes.starts_with(b"{") {
        return read(bytes);
    }
    if let Ok(plan) = read_manifest(bytes) {
        let text = manifest_text(&plan);
        assert_eq!(read_manifest(text.as_bytes()).expect("it is written well"), plan);
    }
    let files = TRACES.into_iter().chain([("m", bytes)]);
    let mut archive: Vec<u8> = files.flat_map(|(name, bytes)| entry(name, bytes)).collect();
    archive.resize(archive.len() + 2 * BLOCK, 0);
    read(&archive);
}

fn read(archive: &[u8]) {
    let mut file = temporary();
    file.write_all(archive).expect("the disk has room");
    let Ok(inputs) = Inputs::of_file("fuzz", file) else { return };
    let Ok((engine, summary)) = inputs.read() else { return };
    let _ = (summary.to_string(), summary.to_json().to_string(), inputs.notes(), inputs.losses());
    // A second reading finds the same.
    let (again, _) = inputs.read().expect("it was read before");
    assert_eq!(engine.tables.slice.ts.len(), again.tables.slice.ts.len());
    assert_eq!(summary.parts.is_empty(), !inputs.is_merged());
    for member in inputs.members() {
        let _ = inputs.read_alone(member);
    }
}

/// Makes a file without a name.
fn temporary() -> File {
    tempfile::tempfile().expect("a temporary file")
}

/// Makes an entry of a tar archive.
fn entry(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut header = vec![0; BLOCK];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[124..136].copy_from_slice(format!("{:011o}\0", bytes.len()).as_bytes());
    header[148..156].copy_from_slice(b"        ");
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let padding = bytes.len().next_multiple_of(BLOCK) - bytes.len();
    [header, bytes.to_vec(), vec![0; padding]].concat()
}
