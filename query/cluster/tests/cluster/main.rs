//! The program `esatto-cluster`: a scheduler and executors on this machine, beside runs without a
//! cluster, and what can go wrong.

mod damage;
mod equal_rows;
mod failures;
mod lost_executors;
mod processes;
mod queries;
mod stock;
mod traces;

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder of a test.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cluster-{name}"));
    let _may_be_missing = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a folder can be made");
    path.canonicalize().expect("it is there")
}
