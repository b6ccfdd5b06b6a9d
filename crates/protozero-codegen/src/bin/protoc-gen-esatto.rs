//! protoc plugin: `protoc --esatto_out=src/protos --esatto_opt=root=crate::protos shop.proto`.

#![forbid(unsafe_code)]

use std::io::{Read as _, Write as _};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut request = Vec::new();
    std::io::stdin().read_to_end(&mut request)?;
    let response = esatto_protozero_codegen::run_plugin(&request)?;
    std::io::stdout().write_all(&response)?;
    Ok(())
}
