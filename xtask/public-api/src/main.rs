//! Lists the public items of a crate, one per line: `list-public-api RUSTDOC_JSON`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: list-public-api RUSTDOC_JSON");
        return ExitCode::from(2);
    };
    let built = public_api::Builder::from_rustdoc_json(&path)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build();
    match built {
        Ok(api) => {
            api.items().for_each(|item| println!("{item}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("list-public-api: {}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}
