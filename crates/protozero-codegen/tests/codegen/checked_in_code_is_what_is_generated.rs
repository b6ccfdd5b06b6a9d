use std::collections::BTreeMap;
use std::path::Path;

use esatto_protozero_codegen::{Config, Output};

use crate::{FIXTURES, Folder, here, protos};

/// Returns the files of `generated/`.
pub(crate) fn output() -> Output {
    Config::new().owned("**").compile(&FIXTURES, &[protos()]).unwrap()
}

/// Run with `ESATTO_BLESS=1` to accept the current output of the generator.
#[test]
fn the_fixture_is_up_to_date() {
    let output = output();
    let folder = here().join("generated");
    if std::env::var_os("ESATTO_BLESS").is_some() {
        let _ = std::fs::remove_dir_all(&folder);
        output.write_to(&folder).unwrap();
    }
    assert!(files(&folder) == *output.files(), "run with ESATTO_BLESS=1 and look at the diff");
}

#[test]
fn the_order_of_the_arguments_does_not_matter() {
    let mut reversed = FIXTURES;
    reversed.reverse();
    let output = Config::new().owned("**").compile(&reversed, &[protos()]).unwrap();
    assert!(output.files() == self::output().files() && output.bundle() == self::output().bundle());
}

#[test]
fn files_that_are_up_to_date_are_not_touched() {
    let folder = Folder::new("untouched");
    let paths = output().write_to(&folder.0).unwrap();
    let modified = || paths.iter().map(|path| path.metadata().unwrap().modified().unwrap()).collect::<Vec<_>>();
    let before = modified();
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(output().write_to(&folder.0).unwrap(), paths);
    assert_eq!(modified(), before);
}

#[test]
fn sync_regenerates_the_code_of_a_crate() {
    let folder = Folder::new("sync");
    let root = &folder.0;
    std::fs::create_dir_all(root.join("proto")).unwrap();
    std::fs::copy(protos().join("fixture3.proto"), root.join("proto/fixture3.proto")).unwrap();
    let conf = |text: &str| std::fs::write(root.join("codegen.conf"), text).unwrap();
    conf("out gen # here\ndescriptor all.bin\n\nowned .fixture.Modern\nexternal perfetto.protos ::esatto_schema");

    let sync = |check| esatto_protozero_codegen::sync(root, check).unwrap();
    let all = [root.join("all.bin"), root.join("gen/fixture3.rs"), root.join("gen/mod.rs")];
    assert_eq!(sync(true), all, "nothing is there yet");
    assert_eq!(sync(true), all, "checking writes nothing");
    assert_eq!(sync(false), all);
    assert!(sync(true).is_empty());

    std::fs::write(root.join("proto/broken.proto"), "nonsense").unwrap();
    assert!(esatto_protozero_codegen::sync(root, true).is_err());
    conf(
        "out gen\nfile fixture3.proto\ndescriptor all.bin\nowned .fixture.Modern\nexternal perfetto.protos ::esatto_schema",
    );
    assert!(sync(true).is_empty(), "only this file counts");

    std::fs::write(root.join("gen/old.rs"), "").unwrap();
    std::fs::write(root.join("gen/mod.rs"), "edited").unwrap();
    assert_eq!(sync(true), [root.join("gen/mod.rs"), root.join("gen/old.rs")]);
    sync(false);
    assert!(sync(true).is_empty() && !root.join("gen/old.rs").exists());

    for (text, message) in [
        ("owned\n", "codegen.conf:1: unknown directive or wrong number of words: `owned`"),
        ("\nouned x\n", "codegen.conf:2: unknown option `ouned`; known are "),
        ("layout deep\n", "codegen.conf:1: option `layout` takes packages|flat, not `deep`"),
    ] {
        conf(text);
        let error = esatto_protozero_codegen::sync(root, true).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

/// Returns the text of all files below a folder.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(next) = todo.pop() {
        for entry in std::fs::read_dir(next).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}
