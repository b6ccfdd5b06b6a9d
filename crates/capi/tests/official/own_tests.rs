//! The tests that the official packages contain.

use std::path::Path;

use esatto_tests::Skip;

use crate::abi_version::succeed;
use crate::project::Project;

/// Number of these tests, in both versions.
const TESTS: [(&str, usize); 2] = [("perfetto-sdk-sys", 2), ("perfetto-sdk", 36)];

/// Copies the packages out of Cargo's cache, because they cannot be built there, and runs their
/// tests.
pub(crate) fn pass(project: &Project) -> Result<(), Skip> {
    for (package, count) in TESTS {
        let source = project.source(package);
        let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(source.file_name().expect("a name"));
        let _ = std::fs::remove_dir_all(&copy);
        copy_folder(&source, &copy);
        let manifest = std::fs::read_to_string(copy.join("Cargo.toml")).expect("a manifest");
        std::fs::write(copy.join("Cargo.toml"), manifest + "\n[workspace]\n").expect("a workspace of its own");

        let mut tests = project.cargo_in(&copy, "test");
        tests.args(["--no-default-features", "--lib"]);
        let output = succeed(&mut tests);
        let text = String::from_utf8_lossy(&output.stdout);
        let passed = format!("test result: ok. {count} passed; 0 failed; 0 ignored");
        assert!(text.contains(&passed), "{package}: not '{passed}'\n{text}");
    }
    Ok(())
}

/// Copies all files except the amalgamated library, which must not be used.
fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            if entry.file_name() != "libperfetto_c" {
                copy_folder(&entry.path(), &to);
            }
        } else {
            // Without permissions, because files in the cache may be read-only.
            std::fs::write(to, std::fs::read(entry.path()).expect("a file")).expect("a copy");
        }
    }
}
