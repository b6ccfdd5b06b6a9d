//! Code of the documentation's pages: each Rust block is compiled, and run unless it says
//! otherwise.

/// Makes the blocks of these pages doc tests.
macro_rules! pages {
    ($($name:ident $path:literal),* $(,)?) => {
        $(
            #[doc = include_str!(concat!("../../", $path))]
            pub struct $name;
        )*
    };
}

pages! {
    Readme "README.md",
    SdkReadme "crates/esatto/README.md",
    WhichWay "crates/esatto/docs/which-way.md",
    Async "crates/esatto/docs/async.md",
    CommonMistakes "crates/esatto/docs/common-mistakes.md",
    ProtozeroReadme "crates/protozero/README.md",
    CodegenReadme "crates/protozero-codegen/README.md",
    Tutorial "docs/tutorial.md",
    RustProgram "docs/how-to/rust-program.md",
    AsyncServer "docs/how-to/async-server.md",
    FlightRecorder "docs/how-to/flight-recorder.md",
    Startup "docs/how-to/startup.md",
    DataSource "docs/how-to/data-source.md",
}
