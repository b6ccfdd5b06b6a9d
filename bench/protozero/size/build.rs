//! Generates the messages for Esatto and prost, each into its own file.

use std::path::PathBuf;

const FILES: [&str; 2] = ["every_field.proto", "packet.proto"];
const INCLUDE: &str = "../encode/proto";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed={INCLUDE}");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    for file in FILES {
        let module = file.trim_end_matches(".proto");
        let code = esatto_protozero_codegen::Config::new()
            .layout(esatto_protozero_codegen::Layout::Flat)
            .root(format!("crate::{module}"))
            .compile(&[file], &[INCLUDE])?;
        std::fs::write(out.join(format!("{module}.rs")), code.bundle())?;
    }
    Ok(prost_build::Config::new().compile_fds(protox::compile([FILES[0]], [INCLUDE])?)?)
}
