//! Inputs to begin with: the corpus of a target, and what real programs wrote.

use std::path::{Path, PathBuf};

use esatto_protozero::Fields;

/// Where an input comes from, and its bytes.
pub(crate) type Seed = (String, Vec<u8>);

/// Returns the seeds of a target.
pub(crate) fn of(target: &str) -> Vec<Seed> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seeds = Vec::new();
    for path in files(&here.join("../corpus").join(target)) {
        seeds.push((path.display().to_string(), read(&path)));
    }
    let tests = here.join("../../tests");
    for path in files(&tests.join("captures")).into_iter().chain(files(&tests.join("traces"))) {
        let origin = path.display().to_string();
        seeds.extend(captured(target, &origin, &path).into_iter().map(|bytes| (origin.clone(), bytes)));
    }
    seeds
}

/// Returns the inputs for a target that a captured file contains.
fn captured(target: &str, origin: &str, path: &Path) -> Vec<Vec<u8>> {
    let is_one_of = |ends: &[&str]| ends.iter().any(|end| origin.ends_with(end));
    let whole = |is_seed: bool| if is_seed { vec![read(path)] } else { Vec::new() };
    match target {
        "ipc_frames" | "rpc_frames" => whole(is_one_of(&[".c2s.bin", ".s2c.bin"])),
        "ipc_host" => whole(is_one_of(&[".c2s.bin"])),
        "protozero_fields" | "trace_file" => whole(is_one_of(&[".pftrace"])),
        "shm_region" => whole(origin.contains(".smb")),
        "text_format" => whole(is_one_of(&[".pbtx", ".cfg"])),
        // Configs, descriptors and commits.
        "protozero_owned" if is_one_of(&["consumer.c2s.bin"]) => {
            calls(&read(path), 1).iter().filter_map(|args| last(args, 1).map(<[u8]>::to_vec)).collect()
        }
        "protozero_owned" if is_one_of(&["producer.c2s.bin"]) => {
            let stream = read(path);
            let descriptors = calls(&stream, 2);
            let descriptors = descriptors.iter().filter_map(|args| last(args, 1).map(<[u8]>::to_vec));
            descriptors.chain(calls(&stream, 4)).collect()
        }
        "service_commit" if is_one_of(&["producer.c2s.bin"]) => calls(&read(path), 4),
        _ => Vec::new(),
    }
}

/// Returns the arguments of all calls of a method in a captured stream of frames.
fn calls(mut stream: &[u8], method: u64) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    while let Some((header, rest)) = stream.split_first_chunk::<4>() {
        let Some((frame, rest)) = rest.split_at_checked(u32::from_le_bytes(*header) as usize) else { break };
        stream = rest;
        let invoke = last(frame, 5).unwrap_or_default();
        if Fields::new(invoke).any(|field| field.id == 2 && field.as_u64() == method) {
            out.extend(last(invoke, 3).map(<[u8]>::to_vec));
        }
    }
    out
}

/// Returns the value of the last field with this id.
fn last(message: &[u8], id: u32) -> Option<&[u8]> {
    Fields::new(message).filter(|field| field.id == id).last().map(|field| field.as_bytes())
}

/// Returns the files below a folder, in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("a folder that can be listed").path();
        if path.is_dir() { files.extend(self::files(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
