use crate::c_library::{prefix, root};
use crate::unit::{output, tool};
use esatto_tests::{Harness, Skip, skip};
use std::process::Command;

/// Runs the program under ThreadSanitizer, and returns its reports.
fn reports(harness: &Harness, argument: &str, suppressions: bool) -> Vec<String> {
    let mut program = Command::new(harness.path("threads"));
    program.arg(argument).current_dir(harness.folder()).env_remove("LD_LIBRARY_PATH");
    let file = prefix().join("share/perfetto_c/thread-sanitizer.supp");
    let options = if suppressions { format!("suppressions={}", file.display()) } else { String::new() };
    let output = program.env("TSAN_OPTIONS", options).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let reports: Vec<_> = said.lines().filter(|line| line.starts_with("SUMMARY: ")).map(str::to_owned).collect();
    assert_eq!(output.status.success(), reports.is_empty(), "{said}");
    reports
}

#[test]
fn with_the_installed_suppressions() {
    skip(|| {
        let harness = Harness::new();
        let library = prefix().join("lib");
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=gnu11", "-O1", "-g", "-fsanitize=thread", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]);
        gcc.arg(harness.path("threads")).arg(root().join("tests/tests/packaging/c/threads.c"));
        gcc.arg("-I").arg(prefix().join("include")).arg("-L").arg(&library).arg("-lperfetto_c");
        gcc.arg(format!("-Wl,-rpath,{}", library.display()));
        let built = gcc.output().expect("gcc runs");
        let said = String::from_utf8_lossy(&built.stderr);
        if said.contains("tsan") && !built.status.success() {
            return Err(Skip::outside_ci("gcc has no ThreadSanitizer".into()));
        }
        assert!(built.status.success(), "{said}");
        assert_eq!(reports(&harness, "", true), [""; 0]);
        let races = reports(&harness, "race", true);
        assert!(races.len() == 1 && races[0].contains("threads.c") && races[0].ends_with(" in race"), "{races:#?}");
        assert!(reports(&harness, "", false).len() > 10, "the suppressions are needed");
        Ok(())
    });
}

/// Of the ways to find the file, this is the one that the documentation shows.
#[test]
fn whose_place_pkg_config_knows() {
    skip(|| {
        for package in ["perfetto_c", "perfetto_c_v59"] {
            let mut pkg_config = tool("pkg-config", "cmake")?;
            pkg_config.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
            pkg_config.args(["--variable=thread_sanitizer_suppressions", package]);
            let place = output(&mut pkg_config);
            assert!(std::path::Path::new(place.trim()).is_file(), "{place}");
        }
        Ok(())
    });
}
