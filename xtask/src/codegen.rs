//! The generated code of `crates/schema` and `crates/ports`, from `crates/schema/proto`, and the
//! table of events in `crates/probes`.

use crate::{ftrace_schema, shell};

/// Generates, or with `--check` compares.
///
/// # Errors
///
/// A `.proto` file that does not parse, or with `--check` generated code that differs.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    match args {
        [] => sync(false),
        [flag] if flag == "--check" => sync(true),
        _ => Err("codegen takes nothing but --check".into()),
    }
}

/// Compares the generated code with what would be generated now.
pub(crate) fn check() -> Result<(), String> {
    sync(true)
}

fn sync(check: bool) -> Result<(), String> {
    let root = shell::root();
    let mut stale = Vec::new();
    for folder in ["crates/schema", "crates/ports"] {
        let found = esatto_protozero_codegen::sync(&root.join(folder), check);
        stale.extend(found.map_err(|error| format!("codegen: {folder}: {error}"))?);
    }
    stale.extend(ftrace_schema::sync(&root, check).map_err(|error| format!("codegen: {error}"))?);
    for path in &stale {
        let path = path.strip_prefix(&root).unwrap_or(path).display();
        println!("{} {path}", if check { "out of date:" } else { "written:" });
    }
    if check && !stale.is_empty() {
        return Err(format!("{} generated files are out of date: cargo xtask codegen", stale.len()));
    }
    Ok(())
}
