//! The generator, tested with fixtures that use all features of the schema language, and compared
//! with prost-reflect.

// Lints that a careful user may set for the module with generated code.
#[deny(warnings, missing_docs, unsafe_code, clippy::pedantic)]
#[rustfmt::skip]
mod generated;

/// Bindings whose names mean something to Rust: they compile.
#[allow(unreachable_pub, dead_code, deprecated, unused_imports, unused_qualifications, clippy::all, clippy::nursery, clippy::pedantic)]
#[allow(non_camel_case_types, non_snake_case, non_upper_case_globals)]
#[deny(missing_docs, unsafe_code)]
#[path = "rpc/mod.rs"]
#[rustfmt::skip]
mod rpc_names;

mod bindings_are_generated;
mod bindings_refuse_unsupported_services;
mod both_directions_agree_with_prost_reflect;
mod cases_of_the_specification;
mod checked_in_code_is_what_is_generated;
mod decoders_agree_with_prost_reflect_on_any_message;
mod extensions_are_methods_of_the_extended_message;
mod features_gate_types_and_their_fields;
mod generated_code_is_formatted;
mod maps_and_oneofs_are_maps_and_enumerations;
mod names_never_collide;
mod options_of_services_are_built_in;
mod owned_values_keep_unknown_fields;
mod packages_are_modules;
mod services_number_their_methods;
mod the_command_generates;
mod the_example_of_the_documentation_works;
mod the_plugin_answers_protoc;
mod unsupported_schemas_are_refused;

use generated::fixture;

/// The `.proto` files of the checked-in code, without those that they import.
const FIXTURES: [&str; 6] =
    ["cases.proto", "fixture.proto", "imported.proto", "names.proto", "shapes.proto", "shop.proto"];

/// Returns the fixture's descriptors, compiled without the generator.
fn pool() -> prost_reflect::DescriptorPool {
    let set = protox::compile(FIXTURES, [protos()]).expect("the fixture compiles");
    prost_reflect::DescriptorPool::from_file_descriptor_set(set).expect("its descriptors are consistent")
}

fn protos() -> std::path::PathBuf {
    here().join("protos")
}

fn here() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/codegen")
}

/// A new folder for one test, removed when it ends.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        static COUNTER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let n = COUNTER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("esatto-codegen-{name}-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
