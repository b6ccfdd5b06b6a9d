//! Makes random schemas and compiles them twice: with our generator and with prost's. In between
//! goes code that knows both.
//!
//! `ESATTO_CONFORMANCE_SCHEMAS` sets how many files there are, `ESATTO_CONFORMANCE_SEED` makes
//! others of them. The schemas are in the build's `OUT_DIR/protos`.

#![forbid(unsafe_code)]

mod glue;
mod schema;

#[path = "../src/rng.rs"]
#[allow(missing_docs, unreachable_pub)]
mod rng;

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message as _;

/// Files of the schema unless told otherwise.
const SCHEMAS: u64 = 4;
/// Where it all begins unless told otherwise.
const SEED: u64 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let seed = number("ESATTO_CONFORMANCE_SEED", SEED)?;
    let count = number("ESATTO_CONFORMANCE_SCHEMAS", SCHEMAS)?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    generate(seed, count, &out).map_err(|error| format!("ESATTO_CONFORMANCE_SEED={seed}: {error}").into())
}

fn generate(seed: u64, count: u64, out: &std::path::Path) -> Result<(), Box<dyn Error>> {
    let files = schema::files(&mut rng::Rng::new(seed), usize::try_from(count)?);
    let protos = out.join("protos");
    fs::create_dir_all(&protos)?;
    for file in &files {
        fs::write(protos.join(&file.name), file.to_string())?;
    }
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();

    let ours = esatto_protozero_codegen::Config::new().owned("**").compile(&names, &[&protos])?;
    fs::write(out.join("ours.rs"), ours.bundle())?;

    let descriptors = prost_types::FileDescriptorSet::decode(ours.descriptor_set())?;
    let theirs = out.join("theirs");
    fs::create_dir_all(&theirs)?;
    let mut config = prost_build::Config::new();
    config.out_dir(&theirs).btree_map(["."]).include_file("mod.rs");
    config.compile_fds(descriptors)?;

    fs::write(out.join("glue.rs"), glue::code(&files, seed))?;
    Ok(())
}

fn number(name: &str, default: u64) -> Result<u64, Box<dyn Error>> {
    println!("cargo:rerun-if-env-changed={name}");
    match env::var(name) {
        Ok(text) => text.parse().map_err(|error| format!("{name}={text}: {error}").into()),
        Err(_) => Ok(default),
    }
}
