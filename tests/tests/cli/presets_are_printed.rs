//! `esatto config presets` and `esatto config show`.

use esatto_tests::{Harness, esatto_bin};
use std::process::Output;

fn config(harness: &Harness, args: &[&str]) -> Output {
    harness.command(esatto_bin()).arg("config").args(args).output().expect("it runs")
}

#[test]
fn each_preset_of_the_list_is_a_config_without_warnings() {
    let harness = Harness::new();
    let output = config(&harness, &["presets", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let presets = json["presets"].as_array().expect("a list");
    let names: Vec<&str> = presets.iter().map(|preset| preset["name"].as_str().expect("a name")).collect();
    assert!(names.contains(&"default") && names.contains(&"sched"), "{names:?}");
    let list = String::from_utf8(config(&harness, &["presets"]).stdout).expect("text");
    for name in names {
        assert!(list.lines().any(|line| line.split(' ').next() == Some(name)), "{name} is not in\n{list}");
        let shown = config(&harness, &["show", name]);
        harness.write("my.cfg", shown.stdout);
        let checked = config(&harness, &["check", "--strict", "my.cfg"]);
        let said = String::from_utf8_lossy(&checked.stdout);
        assert!(checked.status.success() && said == "my.cfg: no mistakes\n", "{name}:\n{said}");
    }
}

#[test]
fn an_unknown_preset_names_the_known_ones() {
    let output = config(&Harness::new(), &["show", "shed"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("sched") && said.contains("default"), "{said}");
}
