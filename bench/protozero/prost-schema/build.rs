//! Generates all messages that a trace can have.

const TRACE: &str = "protos/perfetto/trace/trace.proto";
const INCLUDE: &str = "../../../crates/schema/proto";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed={INCLUDE}");
    println!("cargo::rerun-if-changed=build.rs");
    let set = protox::compile([TRACE], [INCLUDE])?;
    Ok(prost_build::Config::new().compile_fds(set)?)
}
