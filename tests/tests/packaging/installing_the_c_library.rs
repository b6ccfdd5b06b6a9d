use crate::c_library::{cmake, file, install, needed, prefix, root, stage};
use crate::unit::{output, tool};
use esatto_tests::skip;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

/// All files below a folder.
fn files(folder: &Path) -> BTreeSet<String> {
    let listing =
        output(Command::new("find").current_dir(folder).args([".", "!", "-type", "d", "-printf", "%P %m\\n"]));
    listing.lines().map(str::to_owned).collect()
}

#[test]
fn it_installs_the_promised_files_only() {
    let mut expected: BTreeSet<String> = [
        "lib/libperfetto_c.so 755",
        "lib/libperfetto_c.a 644",
        "lib/v59/libperfetto_c.so 755",
        "lib/v59/libperfetto_c.a 644",
        "lib/pkgconfig/perfetto_c.pc 644",
        "lib/pkgconfig/perfetto_c_v59.pc 644",
        "lib/cmake/perfetto_c/perfetto_cConfig.cmake 644",
        "lib/cmake/perfetto_c/perfetto_cConfigVersion.cmake 644",
        "share/perfetto_c/leak-sanitizer.supp 644",
        "share/perfetto_c/thread-sanitizer.supp 644",
    ]
    .map(str::to_owned)
    .into();
    let headers = files(&root().join("crates/capi/include"));
    assert!(headers.iter().any(|name| name.starts_with("esatto/trace.hpp ")));
    expected.extend(headers.iter().filter_map(|line| Some(format!("include/{} 644", line.rsplit_once(' ')?.0))));
    let found: BTreeSet<String> =
        files(stage()).iter().map(|name| name.strip_prefix("opt/perfetto/").unwrap_or(name).to_owned()).collect();
    assert_eq!(found, expected);
    // Perfetto's own headers are `perfetto_c.h` and those in `perfetto`.
    assert!(found.iter().all(|name| !name.starts_with("include/") || name.starts_with("include/esatto/")));
}

#[test]
fn a_flavour_is_known_by_its_symbols() {
    for (library, has, has_not) in [
        ("lib/libperfetto_c.so", "PerfettoStreamWriterNewChunk", "PerfettoPbMsgWriterNewChunk"),
        ("lib/v59/libperfetto_c.so", "PerfettoPbMsgWriterNewChunk", "PerfettoStreamWriterNewChunk"),
    ] {
        let symbols = output(Command::new("nm").args(["-D", "--defined-only"]).arg(prefix().join(library)));
        let has_symbol = |symbol: &str| symbols.split_whitespace().any(|word| word == symbol);
        assert!(has_symbol(has) && !has_symbol(has_not), "{library}");
    }
}

/// Runs `install` where it must fail, and returns its output.
fn complaint(args: &[&str]) -> String {
    let output = install(args).stdout(Stdio::null()).output().expect("cargo runs");
    assert!(!output.status.success(), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn mistakes_are_reported_before_anything_is_built() {
    let no_folder = file("no-folder");
    std::fs::write(&no_folder, "").expect("the file is ours");
    let no_folder = no_folder.to_str().expect("text");
    let said = complaint(&["--prefix", no_folder]);
    assert!(said.contains(&format!("cannot write {no_folder}/")) && said.contains("--destdir"), "{said}");
    assert!(complaint(&["--prefix"]).contains("--prefix needs a value"));
    assert!(complaint(&["--prefiks=/usr"]).contains("install does not know '--prefiks=/usr'"));
    assert!(complaint(&["--libdir", "../lib"]).contains("--libdir ../lib: a folder below the prefix is wanted"));
    assert!(output(&mut install(&["--help"])).contains("--prefix DIR"));
}

#[test]
fn the_folder_of_libraries_may_have_another_name() {
    skip(|| {
        let mut pkg_config = tool("pkg-config", "cmake")?;
        let stage = file("c-library-elsewhere");
        let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
        let prefix = stage.to_str().expect("text");
        output(&mut install(&["c-library", "--prefix", prefix, "--libdir=lib/some-where", "--profile", profile]));
        let folder = stage.join("lib/some-where");
        pkg_config.args(["--variable=static_library", "perfetto_c"]).env("PKG_CONFIG_PATH", folder.join("pkgconfig"));
        let library = output(&mut pkg_config);
        let found = std::fs::canonicalize(library.trim()).expect("it is there");
        assert_eq!(found, std::fs::canonicalize(folder.join("libperfetto_c.a")).expect("it is there"));
        let config = std::fs::read_to_string(folder.join("cmake/perfetto_c/perfetto_cConfig.cmake"));
        assert!(config.expect("it is there").contains("${CMAKE_CURRENT_LIST_DIR}/../../../..\""));
        Ok(())
    });
}

#[test]
fn cmake_takes_versions_that_are_there() {
    skip(|| {
        for (version, is_there) in [
            ("", true),
            ("58", true),
            ("58.2 EXACT", true),
            ("58.3", false),
            ("57", false),
            ("59", true),
            ("60", false),
            ("58...59", true),
        ] {
            let folder = file("cmake-versions");
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(&folder).expect("the folder is ours");
            let script = format!(
                "cmake_minimum_required(VERSION 3.19)\nproject(versions NONE)\nfind_package(perfetto_c {version} QUIET)\n\
                 message(STATUS \"found=${{perfetto_c_FOUND}} ${{perfetto_c_VERSION}}\")\n"
            );
            std::fs::write(folder.join("CMakeLists.txt"), script).expect("the folder is ours");
            let mut cmake = tool("cmake", "cmake")?;
            cmake.arg("-S").arg(&folder).arg("-B").arg(folder.join("build"));
            let said = output(cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display())));
            assert_eq!(said.contains("found=1"), is_there, "{version}: {said}");
        }
        Ok(())
    });
}

#[test]
fn a_program_of_cmakes_asks_for_a_name_and_not_a_path() {
    skip(|| {
        for target in ["perfetto_c::perfetto_c", "perfetto_c::perfetto_c_v59"] {
            let out = cmake("cmake-names", &["first_trace_c"], target)?;
            assert!(needed(&out.join("first_trace_c")).contains(&"libperfetto_c.so".to_owned()), "{target}");
        }
        let out = cmake("cmake-names", &["first_trace_c"], "perfetto_c::perfetto_c_static")?;
        let names = needed(&out.join("first_trace_c"));
        assert!(names.iter().all(|name| !name.contains("perfetto")), "{names:?}");
        Ok(())
    });
}
