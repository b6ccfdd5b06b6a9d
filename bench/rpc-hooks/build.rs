//! Generates Rust from `proto/echo.proto`.

use esatto_protozero_codegen::{Config, Error, Services};

fn main() -> Result<(), Error> {
    let config = Config::new().services(Services::Ipc);
    config.compile(&["proto/echo.proto"], &["proto"])?.write_to_out_dir("protos.rs")
}
