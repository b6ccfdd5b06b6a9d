//! Generates Rust from `proto/shop.proto`.

use esatto_protozero_codegen::{Config, Error, Services};

fn main() -> Result<(), Error> {
    let config = Config::new().services(Services::Ipc);
    config.compile(&["proto/shop.proto"], &["proto"])?.write_to_out_dir("protos.rs")
}
