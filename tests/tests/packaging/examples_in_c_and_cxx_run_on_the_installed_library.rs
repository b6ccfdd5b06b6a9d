use crate::c_library::{cmake, make, prefix, root};
use crate::unit::{output, tool};
use esatto_tests::{Harness, Implementation, Peer, Skip, esatto_bin, skip, tp};
use std::path::Path;
use std::process::Command;

/// Cargo has it look into its own folder first, where there is another library of the name.
fn without_search_path(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_remove("LD_LIBRARY_PATH");
    command
}

/// The kitchen of `first_trace`.
fn check_events(program: &Path, trace: &Path) {
    output(without_search_path(program).arg(trace));
    tp::assert_clean(trace);
    let answers = tp::query(
        trace,
        "SELECT s.name, extract_arg(s.arg_set_id, 'debug.minutes') AS minutes, dur > 0 AS has_ended FROM slice s \
         JOIN thread_track t ON t.id = s.track_id WHERE category = 'kitchen' ORDER BY s.ts;
         SELECT count(*) AS n FROM slice s JOIN track t ON t.id = s.track_id WHERE t.name = 'orders' AND s.name = 'order';
         SELECT count(*) AS n, max(value) AS highest FROM counter c JOIN process_counter_track t ON t.id = c.track_id \
         WHERE t.name = 'degrees';
         SELECT count(*) AS n FROM flow JOIN slice o ON o.id = slice_out JOIN slice i ON i.id = slice_in \
         WHERE o.name = 'order' AND i.name IN ('soup', 'stew')",
    );
    let [slices, orders, degrees, flows] = &answers[..] else { panic!("{answers:?}") };
    let names: Vec<_> = slices.iter().map(|row| row.text("name")).collect();
    assert_eq!(names, ["soup", "stew", "soup", "burnt"]);
    let minutes: Vec<_> = slices[..3].iter().map(|row| (row.int("minutes"), row.int("has_ended"))).collect();
    assert_eq!(minutes, [(2, 1), (3, 1), (4, 1)]);
    assert_eq!((orders[0].int("n"), flows[0].int("n")), (3, 3));
    assert_eq!((degrees[0].int("n"), degrees[0].real("highest")), (9, 180.0));
}

/// The battery of `data_source`.
fn check_packets(program: &Path, trace: &Path) {
    let said = output(without_search_path(program).arg(trace));
    assert!(said.contains("session 0 wants the battery"), "{said}");
    tp::assert_clean(trace);
    let rows = tp::rows(
        trace,
        "SELECT t.name, count(*) AS n, min(value) AS low, max(value) AS high FROM counter c JOIN track t ON t.id = c.track_id \
         GROUP BY t.name ORDER BY t.name",
    );
    let found: Vec<_> =
        rows.iter().map(|row| (row.text("name"), row.int("n"), row.real("low"), row.real("high"))).collect();
    assert_eq!(found, [("batt.capacity_pct", 10, 81.0, 90.0), ("batt.current_ua", 10, -250_000.0, -241_000.0)]);
}

fn check_both(folder: &Path) {
    for language in ["c", "cxx"] {
        let program = folder.join(format!("first_trace_{language}"));
        check_events(&program, &program.with_extension("pftrace"));
        let program = folder.join(format!("data_source_{language}"));
        check_packets(&program, &program.with_extension("pftrace"));
    }
}

const IN_PROCESS: &[&str] = &["first_trace_c", "first_trace_cxx", "data_source_c", "data_source_cxx"];

#[test]
fn by_make_and_pkg_config() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        check_both(&make("examples-make", IN_PROCESS, &[])?);
        Ok(())
    });
}

#[test]
fn by_make_and_pkg_config_with_v59_linked_in() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        check_both(&make("examples-make-v59", IN_PROCESS, &["PACKAGE=perfetto_c_v59", "STATIC=1"])?);
        Ok(())
    });
}

#[test]
fn by_cmake_with_v59() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        check_both(&cmake("examples-cmake-v59", IN_PROCESS, "perfetto_c::perfetto_c_v59")?);
        Ok(())
    });
}

/// The programs of the library's README.
#[test]
fn as_the_readme_has_them() {
    let readme = std::fs::read_to_string(root().join("crates/capi/README.md")).expect("it is there");
    for (language, extension, compiler, standard) in [("c", "c", "gcc", "-std=c11"), ("cpp", "cc", "g++", "-std=c++17")]
    {
        let (_, rest) = readme.split_once(&format!("```{language}\n")).expect("a program in this language");
        let harness = Harness::new();
        let source = harness.write(&format!("first.{extension}"), rest.split_once("```").expect("its end").0);
        let (program, library) = (harness.path("first"), prefix().join("lib"));
        let mut build = Command::new(compiler);
        build.args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o"]).arg(&program).arg(source);
        build.arg("-I").arg(prefix().join("include")).arg("-L").arg(&library).arg("-lperfetto_c");
        output(build.arg(format!("-Wl,-rpath,{}", library.display())));
        output(without_search_path(&program).current_dir(harness.folder()));
        skip(|| {
            Peer::TraceProcessor.require()?;
            let trace = harness.path("first.pftrace");
            tp::assert_clean(&trace);
            let names = "SELECT name || ' ' || category AS x FROM slice ORDER BY ts";
            let names: Vec<_> = tp::rows(&trace, names).iter().map(|row| row.text("x").to_owned()).collect();
            assert_eq!(names, ["answer net", "sent net"], "{language}");
            Ok(())
        });
    }
}

/// The programs of the guide and of the project's README, run by the printed commands.
#[test]
fn as_the_pages_print_them() {
    skip(|| {
        tool("pkg-config", "cmake")?;
        for (page, name, events) in [
            ("docs/how-to/c-and-cxx-program.md", "first", ["answer", "sent"].as_slice()),
            ("README.md", "app", ["read"].as_slice()),
        ] {
            let text = std::fs::read_to_string(root().join(page)).expect("it is there");
            let (_, rest) = text.split_once("```c\n").expect("a program in C");
            let (program, rest) = rest.split_once("```").expect("its end");
            let (_, rest) = rest.split_once("```sh\n").expect("the commands that run it");
            let commands = rest.split_once("```").expect("their end").0;
            // The library is installed, elsewhere.
            let commands =
                commands.lines().filter(|line| !line.starts_with("cargo xtask") && !line.starts_with("export"));
            let commands: Vec<_> = commands.collect();
            assert_eq!(commands.len(), 2, "{page}: {commands:?}");

            let harness = Harness::new();
            harness.write(&format!("{name}.c"), program);
            std::os::unix::fs::symlink(esatto_bin(), harness.path("esatto")).expect("the folder is ours");
            let path = std::env::var("PATH").unwrap_or_default();
            let mut shell = harness.command("sh");
            shell.args(["-e", "-c", &commands.join("\n")]);
            shell.env("PATH", format!("{}:{path}", harness.folder().display()));
            shell.env("LD_LIBRARY_PATH", prefix().join("lib"));
            output(shell.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig")));

            let trace = std::fs::read(harness.path(format!("{name}.pftrace"))).expect("it is recorded");
            let trace = esatto_trace::Trace::read(&trace[..]);
            let mut found: Vec<_> = trace.events.iter().filter_map(|event| event.name.as_deref()).collect();
            found.sort_unstable();
            found.dedup();
            assert_eq!(found, events, "{page}");
        }
        Ok(())
    });
}

/// A program that a service records, for another program's session or for its own: `system`.
fn system(implementation: Implementation, by_itself: bool) -> Result<(), Skip> {
    const CONFIG: &str = "buffers { size_kb: 4096 } data_sources { config { name: \"track_event\" \
                          track_event_config { disabled_categories: \"*\" enabled_categories: \"graphics\" } } }";
    Peer::TraceProcessor.require()?;
    if implementation == Implementation::Theirs {
        Peer::Official.require()?;
    }
    let folder = make(&format!("examples-system-{implementation}-{by_itself}"), &["system_c", "system_cxx"], &[])?;
    for language in ["c", "cxx"] {
        let harness = Harness::new();
        let _service = harness.service(implementation);
        let mut command = harness.command(folder.join(format!("system_{language}")));
        command.arg("20").env_remove("LD_LIBRARY_PATH");
        let trace = if by_itself {
            let trace = harness.path("trace");
            harness.start("system", command.arg(&trace)).wait_ok();
            trace
        } else {
            let mut recording = harness.record(Implementation::Ours, "trace", CONFIG);
            harness.start("system", &mut command).wait_ok();
            harness.stop(&mut recording)
        };
        tp::assert_clean(&trace);
        let answers = tp::query(
            &trace,
            "SELECT extract_arg(s.arg_set_id, 'debug.picture') AS picture FROM slice s JOIN thread_track t ON t.id = s.track_id \
             JOIN thread USING (utid) JOIN process p USING (upid) WHERE s.name = 'draw' AND p.name GLOB '*system_c*' ORDER BY s.ts;
             SELECT count(*) AS n FROM slice WHERE name = 'done' AND category = 'graphics'",
        );
        let pictures: Vec<_> = answers[0].iter().map(|row| row.int("picture")).collect();
        // The one during which the recording began may or may not be there.
        assert_eq!(pictures[pictures.len() - 20..], (0..20).collect::<Vec<_>>(), "{language}: {pictures:?}");
        assert_eq!(answers[1][0].int("n"), 1, "{language}");
    }
    Ok(())
}

#[test]
fn recorded_by_our_service() {
    skip(|| system(Implementation::Ours, false));
}

#[test]
fn recorded_by_perfettos_service() {
    skip(|| system(Implementation::Theirs, false));
}

#[test]
fn having_themselves_recorded_by_our_service() {
    skip(|| system(Implementation::Ours, true));
}

#[test]
fn having_themselves_recorded_by_perfettos_service() {
    skip(|| system(Implementation::Theirs, true));
}
