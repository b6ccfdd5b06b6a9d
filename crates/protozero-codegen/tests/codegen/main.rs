//! The generator against a fixture with everything in it, and against prost-reflect as a second opinion.

#[allow(dead_code, unreachable_pub)]
#[rustfmt::skip]
mod fixture;

mod both_directions_agree_with_prost_reflect;
mod checked_in_code_is_what_is_generated;
mod decoders_agree_with_prost_reflect_on_any_message;
mod extensions_are_methods_of_the_extended_message;
mod owned_values_keep_what_they_do_not_know;
mod services_number_their_methods;
mod the_plugin_answers_protoc;
mod what_cannot_be_generated_is_refused;

/// The fixture's descriptors, compiled without our generator.
fn pool() -> prost_reflect::DescriptorPool {
    let set = protox::compile(["fixture.proto"], [protos()]).expect("the fixture compiles");
    prost_reflect::DescriptorPool::from_file_descriptor_set(set).expect("its descriptors are consistent")
}

fn protos() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/codegen/protos")
}
