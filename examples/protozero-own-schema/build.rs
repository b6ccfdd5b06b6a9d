//! Generates Rust from `proto/sensors.proto`.

fn main() -> Result<(), esatto_protozero_codegen::Error> {
    let config = esatto_protozero_codegen::Config::new().owned(".sensors.Started");
    config.compile(&["proto/sensors.proto"], &["proto"])?.write_to_out_dir("protos.rs")
}
