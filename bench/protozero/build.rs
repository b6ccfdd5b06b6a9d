//! Generates the messages of `proto/` for Esatto and every peer.

use std::path::PathBuf;

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

const FILES: [&str; 2] = ["every_field.proto", "packet.proto"];
const INCLUDES: [&str; 1] = ["proto"];

fn main() -> Result {
    println!("cargo::rerun-if-changed=proto");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    ours(&out)?;
    prost(&out)
}

fn ours(out: &std::path::Path) -> Result {
    let code = esatto_protozero_codegen::Config::new().root("crate::ours::proto").compile(&FILES, &INCLUDES)?;
    Ok(std::fs::write(out.join("ours.rs"), code.bundle())?)
}

fn prost(out: &std::path::Path) -> Result {
    let set = protox::compile(FILES, INCLUDES)?;
    Ok(prost_build::Config::new().out_dir(out).compile_fds(set)?)
}
