//! Programs that call a method of a missing feature do not compile, and the compiler names the
//! feature. `cargo xtask test` runs this without features.

#![cfg(not(feature = "in-process"))]
#![allow(missing_docs, reason = "tests")]

use std::path::Path;

mod rustc;

#[test]
fn methods_of_the_service_in_the_process() {
    for method in ["in_process", "file_from_env"] {
        let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("without_{method}.rs"));
        let program = format!("fn main() {{ let _ = esatto::Tracing::builder().{method}(); }}");
        std::fs::write(&source, program).expect("writes");
        let output = rustc::compile(&source, &["--emit", "metadata"]);
        std::fs::remove_file(&source).expect("was written");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{method}");
        let hint = "this method needs the feature `in-process` of the crate `esatto`";
        for hint in [hint, "esatto = { …, features = [\"in-process\"] }", "1 previous error"] {
            assert!(errors.contains(hint), "no {hint:?} for {method}:\n{errors}");
        }
    }
}
