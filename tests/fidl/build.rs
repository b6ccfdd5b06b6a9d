//! Generates the types of all schemas of the tests.

use std::error::Error;
use std::fs;

use esatto_fidl_codegen::Config;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=schemas");
    let mut config = Config::new();
    let mut files: Vec<_> =
        fs::read_dir("schemas")?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    files.sort();
    for file in files {
        config = config.file(file);
    }
    Ok(config.write_to_out_dir("fidl.rs")?)
}
