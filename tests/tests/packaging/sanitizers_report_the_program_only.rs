use crate::c_library::{prefix, root};
use crate::unit::{output, tool};
use esatto_tests::{Harness, Skip, skip};
use std::process::Command;

/// Builds a program of `c/` with a sanitizer.
fn build(harness: &Harness, program: &str, sanitizer: &str) -> Result<(), Skip> {
    let library = prefix().join("lib");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]).arg(harness.path(program));
    gcc.arg(format!("-fsanitize={sanitizer}"));
    gcc.arg(root().join(format!("tests/tests/packaging/c/{program}.c")));
    gcc.arg("-I").arg(prefix().join("include")).arg("-L").arg(&library).arg("-lperfetto_c");
    gcc.arg(format!("-Wl,-rpath,{}", library.display()));
    let built = gcc.output().expect("gcc runs");
    let said = String::from_utf8_lossy(&built.stderr);
    if said.contains("san") && said.contains("cannot find") {
        return Err(Skip::outside_ci(format!("gcc has no sanitizer for {sanitizer}s")));
    }
    assert!(built.status.success(), "{said}");
    Ok(())
}

/// Runs a program, with the installed suppressions if `options` names a variable of the sanitizer,
/// and returns its reports.
fn reports(harness: &Harness, program: &str, argument: &str, options: &str) -> Vec<String> {
    let mut command = Command::new(harness.path(program));
    command.arg(argument).current_dir(harness.folder()).env_remove("LD_LIBRARY_PATH");
    let file = if program == "threads" { "thread-sanitizer.supp" } else { "leak-sanitizer.supp" };
    if !options.is_empty() {
        command.env(options, format!("suppressions={}", prefix().join("share/perfetto_c").join(file).display()));
    }
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let reports: Vec<_> = said.lines().filter(|line| line.starts_with("SUMMARY: ")).map(str::to_owned).collect();
    assert_eq!(output.status.success(), reports.is_empty(), "{said}");
    reports
}

#[test]
fn races_with_the_installed_suppressions() {
    skip(|| {
        let harness = Harness::new();
        build(&harness, "threads", "thread")?;
        let reports = |argument, options| reports(&harness, "threads", argument, options);
        assert_eq!(reports("", "TSAN_OPTIONS"), [""; 0]);
        let races = reports("race", "TSAN_OPTIONS");
        assert!(races.len() == 1 && races[0].contains("threads.c") && races[0].ends_with(" in race"), "{races:#?}");
        assert!(reports("", "").len() > 10, "the suppressions are needed");
        Ok(())
    });
}

/// Of the child of a fork: the parent's threads leave their memory there.
#[test]
fn leaks_with_the_installed_suppressions() {
    skip(|| {
        let harness = Harness::new();
        build(&harness, "forks", "address")?;
        let reports = |argument, options| reports(&harness, "forks", argument, options);
        assert_eq!(reports("", "LSAN_OPTIONS"), [""; 0]);
        let leaks = reports("leak", "LSAN_OPTIONS");
        assert!(leaks.len() == 1 && leaks[0].ends_with(" 77 byte(s) leaked in 1 allocation(s)."), "{leaks:#?}");
        assert_eq!(reports("", "").len(), 1, "the suppressions are needed");
        assert_eq!(reports("stay", ""), [""; 0]);
        Ok(())
    });
}

/// Of the ways to find the files, this is the one that the documentation shows.
#[test]
fn pkg_config_knows_the_suppressions() {
    skip(|| {
        for package in ["perfetto_c", "perfetto_c_v59"] {
            for sanitizer in ["leak", "thread"] {
                let mut pkg_config = tool("pkg-config", "cmake")?;
                pkg_config.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
                pkg_config.args([&format!("--variable={sanitizer}_sanitizer_suppressions"), package]);
                let place = output(&mut pkg_config);
                assert!(std::path::Path::new(place.trim()).is_file(), "{place}");
            }
        }
        Ok(())
    });
}
