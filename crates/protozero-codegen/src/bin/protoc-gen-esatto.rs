//! The generator as a plugin of protoc: `protoc --esatto_out=src/protos
//! --esatto_opt=owned=**,imports=on shop.proto`.

#![forbid(unsafe_code)]

use std::io::{Read as _, Write as _};
use std::process::ExitCode;

const USAGE: &str = "\
Generates Rust from .proto files: a plugin of protoc.

  protoc -I proto --esatto_out=src/protos shop.proto
  protoc -I proto --esatto_out=src/protos --esatto_opt=owned=**,imports=on shop.proto

Name all files in one call, because the plugin writes mod.rs, which declares the others.
Parameters, separated by commas (with a colon in the value only in --esatto_opt):

";

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        None => {}
        Some("-h" | "--help") => {
            print!("{USAGE}{}", esatto_protozero_codegen::option_help("", "="));
            return ExitCode::SUCCESS;
        }
        Some("-V" | "--version") => {
            println!("protoc-gen-esatto {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Some(other) => {
            eprintln!("protoc-gen-esatto: unexpected argument '{other}': protoc starts this program (see --help)");
            return ExitCode::from(2);
        }
    }
    match answer() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("protoc-gen-esatto: {error}");
            ExitCode::from(1)
        }
    }
}

fn answer() -> Result<(), Box<dyn std::error::Error>> {
    let mut request = Vec::new();
    std::io::stdin().read_to_end(&mut request)?;
    let response = esatto_protozero_codegen::run_plugin(&request)?;
    std::io::stdout().write_all(&response)?;
    Ok(())
}
