//! Generates the messages of `proto/` for Esatto and every peer, each by its own generator. None of
//! them gets to use protoc: descriptors come from protox, and two of the peers parse `.proto` files
//! themselves.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

const FILES: [&str; 2] = ["every_field.proto", "packet.proto"];
const INCLUDE: &str = "proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={INCLUDE}");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    let set = protox::compile(FILES, [INCLUDE])?;
    let set_file = out.join("descriptors.bin");
    fs::write(&set_file, prost::Message::encode_to_vec(&set))?;

    ours(&out)?;
    prost_build::Config::new().out_dir(folder(&out, "prost")?).compile_fds(set)?;
    buffa(&set_file, &folder(&out, "buffa")?)?;
    micropb(&set_file, &out.join("micropb.rs"))?;
    quick_protobuf(&out)?;
    rust_protobuf(&folder(&out, "rust-protobuf")?)
}

fn ours(out: &Path) -> Result<(), Box<dyn Error>> {
    let code = esatto_protozero_codegen::Config::new()
        .layout(esatto_protozero_codegen::Layout::Flat)
        .root("crate::ours::proto")
        .compile(&FILES, &[INCLUDE])?;
    Ok(fs::write(out.join("ours.rs"), code.bundle())?)
}

fn buffa(set: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    buffa_build::Config::new()
        .files(&FILES)
        .descriptor_set(set)
        // They are not needed, and messages are smaller without them.
        .preserve_unknown_fields(false)
        .out_dir(out)
        .include_file("mod.rs")
        .compile()
}

fn micropb(set: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let mut generator = micropb_gen::Generator::new();
    // Not with `encode_cache`: the cache is a vector for each repeated field, and all cases take
    // longer with it.
    generator.use_container_std();
    Ok(generator.compile_fdset_file(set, out)?)
}

fn quick_protobuf(out: &Path) -> Result<(), Box<dyn Error>> {
    for file in FILES {
        let name = Path::new(file).with_extension("rs");
        let to = out.join(format!("quick_{}", name.display()));
        let from = Path::new(INCLUDE).join(file);
        let config = pb_rs::ConfigBuilder::new(&[&from], Some(&&to), None, &[&Path::new(INCLUDE).to_path_buf()])?;
        pb_rs::types::FileDescriptor::run(&config.single_module(true).headers(false).build())?;
    }
    Ok(())
}

fn rust_protobuf(out: &Path) -> Result<(), Box<dyn Error>> {
    let mut codegen = protobuf_codegen::Codegen::new();
    codegen.pure().include(INCLUDE).inputs(FILES.map(|file| Path::new(INCLUDE).join(file))).out_dir(out);
    // Reflection is not measured, and its tables would only be in the way.
    codegen.customize(protobuf_codegen::Customize::default().lite_runtime(true));
    Ok(codegen.run()?)
}

fn folder(out: &Path, name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let folder = out.join(name);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
