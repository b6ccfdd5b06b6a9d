//! `esatto config check`: mistakes and warnings with their places, for people and for scripts.

use esatto_tests::{Harness, esatto_bin};
use std::process::Output;

const GOOD: &str =
    "buffers { size_kb: 64 fill_policy: DISCARD }\ndata_sources { config { name: \"linux.system_info\" } }\n";

fn check(harness: &Harness, args: &[&str]) -> Output {
    let mut command = harness.command(esatto_bin());
    command.args(["config", "check"]).args(args).output().expect("it runs")
}

/// Returns the exit status and the standard output; standard error must be empty.
fn told(harness: &Harness, args: &[&str]) -> (Option<i32>, String) {
    let output = check(harness, args);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    (output.status.code(), String::from_utf8(output.stdout).expect("UTF-8"))
}

#[test]
fn a_good_config_has_no_mistakes() {
    let harness = Harness::new();
    harness.write("my.cfg", GOOD);
    assert_eq!(told(&harness, &["my.cfg"]), (Some(0), "my.cfg: no mistakes\n".to_owned()));
}

#[test]
fn all_mistakes_have_their_line_and_column() {
    let harness = Harness::new();
    harness.write(
        "my.cfg",
        "buffers { size_kb: \"x\" }\nbogus: 1\n\tduration_ms: true\nbuffers { fill_policy: SOMETIMES }\n",
    );
    let (status, said) = told(&harness, &["my.cfg"]);
    assert_eq!(status, Some(1));
    for place in ["my.cfg:1:20 error: ", "my.cfg:2:1 error: ", "my.cfg:3:15 error: ", "my.cfg:4:24 error: "] {
        assert!(said.contains(place), "{place} is not in\n{said}");
    }
    assert!(said.contains("\nbogus: 1\n^~~~~\n") && said.ends_with("my.cfg: 4 mistakes\n"), "{said}");
}

#[test]
fn values_that_the_service_refuses_are_mistakes() {
    let harness = Harness::new();
    harness.write(
        "my.cfg",
        GOOD.replace("size_kb: 64", "\n  size_kb: 0")
            + "data_sources { config { target_buffer: 2 name: \"linux.system_info\" } }\n",
    );
    let (status, said) = told(&harness, &["my.cfg"]);
    assert_eq!(status, Some(1));
    assert!(
        said.contains("my.cfg:2:3 error: size_kb is 0, it must be between 1 and 4194300\n  size_kb: 0 fill"),
        "{said}"
    );
    assert!(said.contains("my.cfg:4:25 error: target_buffer is 2, the config has 1 buffer"), "{said}");
}

#[test]
fn mistakes_beside_an_unknown_field_are_told_too() {
    let harness = Harness::new();
    let text = "buffers { size_kb: 0 }\nduration: 1000\ndata_sources { config { name: \"linux.ftrac\" } }\n";
    harness.write("my.cfg", text);
    let (status, said) = told(&harness, &["my.cfg"]);
    assert_eq!(status, Some(1));
    for mistake in ["my.cfg:1:11 error: size_kb is 0", "my.cfg:2:1 error: ", "my.cfg:3:25 warning: "] {
        assert!(said.contains(mistake), "{mistake}: {said}");
    }
}

#[test]
fn warnings_fail_only_if_that_is_asked_for() {
    let harness = Harness::new();
    let ring = "buffers { size_kb: 64 }\ndata_sources { config { name: \"track_event\" } }\nwrite_into_file: true\n";
    harness.write("my.cfg", ring);
    let (status, said) = told(&harness, &["my.cfg"]);
    assert_eq!(status, Some(0));
    assert!(said.contains("my.cfg:2:"), "{said}");
    assert!(said.contains("my.cfg:3:1 warning: write_into_file without file_write_period_ms"), "{said}");
    assert!(said.ends_with("my.cfg: no mistakes, 4 warnings\n"), "{said}");
    assert_eq!(told(&harness, &["--strict", "my.cfg"]), (Some(1), said));
    harness.write("my.cfg", ring.replace("write_into_file: true\n", ""));
    let (_, said) = told(&harness, &["my.cfg"]);
    assert!(said.contains("my.cfg: warning: a ring without incremental_state_config"), "{said}");
}

#[test]
fn a_buffer_that_ends_a_file_early_is_told() {
    let harness = Harness::new();
    let file = "write_into_file: true\nfile_write_period_ms: 1000\nflush_period_ms: 5000\n";
    harness.write("my.cfg", GOOD.to_owned() + file);
    let (status, said) = told(&harness, &["--strict", "my.cfg"]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("my.cfg:1:23 warning: with DISCARD, nothing more gets into the file"), "{said}");
    assert!(said.contains("`fill_policy: RING_BUFFER`"), "{said}");
    harness.write("my.cfg", GOOD.replace("DISCARD", "RING_BUFFER") + file);
    assert_eq!(told(&harness, &["--strict", "my.cfg"]), (Some(0), "my.cfg: no mistakes\n".to_owned()));
}

#[test]
fn a_data_source_that_is_not_implemented_is_told() {
    let harness = Harness::new();
    for (name, program) in [("linux.perf", "traced_perf"), ("android.heapprofd", "heapprofd")] {
        harness.write("my.cfg", GOOD.replace("linux.system_info", name));
        let (status, said) = told(&harness, &["--strict", "my.cfg"]);
        assert_eq!(status, Some(1), "{said}");
        let line =
            format!("warning: the data source \"{name}\" is not implemented in Esatto; Perfetto's {program} offers");
        assert!(said.contains(&line), "{said}");
    }
}

#[test]
fn an_unknown_data_source_is_told_with_the_name_that_was_meant() {
    let harness = Harness::new();
    harness.write("my.cfg", GOOD.replace("system_info", "system_inf"));
    let (status, said) = told(&harness, &["my.cfg"]);
    assert_eq!(status, Some(0));
    let line = "my.cfg:2:25 warning: no known program has the data source \"linux.system_inf\"; did you mean \
                \"linux.system_info\"?\n";
    assert!(said.starts_with(line), "{said}");
}

#[test]
fn scripts_get_json() {
    let harness = Harness::new();
    harness.write("good.cfg", GOOD);
    harness.write("bad.cfg", GOOD.replace("64", "0"));
    let (status, said) = told(&harness, &["--json", "good.cfg", "bad.cfg"]);
    assert_eq!(status, Some(1));
    let json: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(json["files"][0], serde_json::json!({ "file": "good.cfg", "findings": [] }));
    let finding = &json["files"][1]["findings"][0];
    assert_eq!((&finding["line"], &finding["column"]), (&1.into(), &11.into()));
    assert_eq!(finding["severity"], "mistake");
    assert_eq!(finding["field"], "buffers[0].size_kb");
}

#[test]
fn json_and_binary_configs_are_checked_by_the_same_rules() {
    let harness = Harness::new();
    let json = r#"{ "buffers": [{ "sizeKb": 0 }], "dataSources": [{ "config": { "name": "linux.system_info" } }] }"#;
    harness.write("my.json", json);
    let (status, said) = told(&harness, &["my.json"]);
    assert_eq!(status, Some(1));
    let line = "my.json: error: buffers[0].size_kb: size_kb is 0, it must be between 1 and 4194300\n";
    assert!(said.starts_with(line), "{said}");
    harness.write("torn.json", "{\n \"buffers\": [{ \"sizeMb\": 1 }]\n}");
    let (status, said) = told(&harness, &["torn.json"]);
    assert_eq!((status, said.contains("torn.json:2:23 error: ")), (Some(1), true), "{said}");
    harness.write("my.pb", [0x0a, 2, 8, 0]);
    let (status, said) = told(&harness, &["my.pb"]);
    assert!(status == Some(1) && said.contains("buffers[0].size_kb: size_kb is 0"), "{said}");
}

#[test]
fn standard_input_and_foreign_files_have_clear_answers() {
    let harness = Harness::new();
    harness.write("my.cfg", GOOD);
    let input = std::fs::File::open(harness.path("my.cfg")).expect("a file");
    let mut command = harness.command(esatto_bin());
    let output = command.args(["config", "check", "-"]).stdin(input).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "stdin: no mistakes\n");
    let (status, said) = told(&harness, &["/bin/true"]);
    assert_eq!(status, Some(1));
    assert!(said.starts_with("/bin/true: error: it is neither text, JSON nor an encoded TraceConfig\n"), "{said}");
    let output = check(&harness, &["no.cfg"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(said, "esatto: cannot read the config no.cfg: No such file or directory (os error 2)\n");
    assert_eq!(check(&harness, &[]).status.code(), Some(2));
}

#[test]
fn a_config_without_content_is_a_mistake() {
    let harness = Harness::new();
    harness.write("my.cfg", "# nothing\n");
    let (status, said) = told(&harness, &["my.cfg"]);
    assert_eq!(status, Some(1));
    assert!(said.starts_with("my.cfg: error: cannot record: it has no data_sources; add "), "{said}");
}
