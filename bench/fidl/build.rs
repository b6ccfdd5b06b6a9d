//! Generates Rust from `fidl/values.fidl` and `proto/values.proto`.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    esatto_fidl_codegen::Config::new().file("fidl/values.fidl").write_to_out_dir("fidl.rs")?;
    let services = esatto_protozero_codegen::Services::Ipc;
    let config = esatto_protozero_codegen::Config::new().services(services).owned(".bench.Item").owned(".bench.Points");
    config.compile(&["proto/values.proto"], &["proto"])?.write_to_out_dir("protos.rs")?;
    Ok(())
}
