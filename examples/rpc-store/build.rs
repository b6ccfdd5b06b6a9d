//! Generates Rust from `proto/store.proto`.

use esatto_protozero_codegen::{Config, Error, Services};

fn main() -> Result<(), Error> {
    let config = Config::new().services(Services::Ipc);
    config.compile(&["proto/store.proto"], &["proto"])?.write_to_out_dir("protos.rs")
}
