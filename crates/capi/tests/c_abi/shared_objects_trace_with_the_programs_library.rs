use std::path::PathBuf;

use esatto_tests::Skip;

use crate::build::{compile, file_in_tmp};
use crate::run::{Run, Stage, column};

/// Compiles a shared object from `plugin.c`.
fn plugin(stage: Stage, name: &str) -> PathBuf {
    let output = file_in_tmp(&format!("plugin-{name}-{stage:?}.so"));
    let name = format!("-DNAME=\"{name}\"");
    let options = ["-std=gnu11", "-pthread", "-shared", "-fPIC", &name, "-lperfetto_c"];
    compile("gcc", stage.version(), "plugin.c", &output, &options);
    output
}

fn plugins_come_and_go(stage: Stage) -> Result<(), Skip> {
    let [one, two] = ["one", "two"].map(|name| plugin(stage, name));
    let run = Run::with(&[("PLUGIN_ONE", &*one), ("PLUGIN_TWO", &*two)], "plugins.c", stage, |_| ())?;
    let [slices, tracks, args] = run.query(
        "trace",
        [
            "SELECT category || ': ' || name || ' ' || count() AS x FROM slice GROUP BY category, name ORDER BY x",
            "SELECT DISTINCT s.name || ' on ' || t.name AS x FROM slice s JOIN track t ON t.id = s.track_id \
             WHERE t.name GLOB 'track of*' ORDER BY x",
            "SELECT key || ' = ' || int_value AS x FROM args WHERE key GLOB 'debug*' ORDER BY x",
        ],
    )?;
    assert_eq!(
        column(&slices, "x"),
        [
            "plugin.one: both 5",
            "plugin.one: only one 5",
            "plugin.two: both 5",
            "plugin.two: only two 5",
            "program: between 1",
            "program: both 1",
            "program: without plugins 1",
        ]
    );
    assert_eq!(column(&tracks, "x"), ["only one on track of one", "only two on track of two"]);
    let numbers = |of: &str, numbers: [u32; 5]| numbers.map(|number| format!("debug.number of {of} = {number}"));
    assert_eq!(
        column(&args, "x"),
        [numbers("one", [1, 100, 101, 102, 4]), numbers("two", [100, 101, 102, 2, 3])].concat()
    );
    let packets = run.texts("trace");
    let count = |text: &str| packets.iter().filter(|packet| *packet == text).count();
    assert_eq!((count("packet of one"), count("packet of two"), packets.len()), (5, 5, 10));
    let [second] = run.query("second", ["SELECT name FROM slice"])?;
    assert_eq!(column(&second, "name"), ["once more"]);
    Ok(())
}

#[test]
fn v58() {
    esatto_tests::skip(|| plugins_come_and_go(Stage::V58));
}

#[test]
fn v59() {
    esatto_tests::skip(|| plugins_come_and_go(Stage::V59));
}

#[test]
fn theirs() {
    esatto_tests::skip(|| plugins_come_and_go(Stage::Theirs));
}
