use std::path::Path;

use esatto_protozero_codegen::Config;

use crate::protos;

/// Set `ESATTO_BLESS` to accept what the generator makes now.
#[test]
fn the_fixture_is_up_to_date() {
    let config = Config::new().owned("fixture*.proto");
    let code = config.compile(&["fixture.proto", "fixture3.proto"], &[protos()]).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/codegen/fixture.rs");
    if std::env::var_os("ESATTO_BLESS").is_some() {
        std::fs::write(&path, code.bundle()).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap() == code.bundle(), "run with ESATTO_BLESS=1 and look at the diff");
}

#[test]
fn a_crate_is_kept_in_step_with_its_protos() {
    let root = std::env::temp_dir().join(format!("esatto-codegen-{}", std::process::id()));
    std::fs::create_dir_all(root.join("proto")).unwrap();
    std::fs::copy(protos().join("fixture3.proto"), root.join("proto/fixture3.proto")).unwrap();
    std::fs::write(root.join("codegen.conf"), "out gen # here\ndescriptor all.bin\n\nowned .fixture.Modern\n").unwrap();

    let sync = |check| esatto_protozero_codegen::sync(&root, check).unwrap();
    let all = [root.join("all.bin"), root.join("gen/fixture3.rs"), root.join("gen/mod.rs")];
    assert_eq!(sync(true), all, "nothing is there yet");
    assert_eq!(sync(true), all, "checking writes nothing");
    assert_eq!(sync(false), all);
    assert!(sync(true).is_empty());

    std::fs::write(root.join("gen/old.rs"), "").unwrap();
    std::fs::write(root.join("gen/mod.rs"), "edited").unwrap();
    assert_eq!(sync(true), [root.join("gen/mod.rs"), root.join("gen/old.rs")]);
    sync(false);
    assert!(sync(true).is_empty() && !root.join("gen/old.rs").exists());

    std::fs::write(root.join("codegen.conf"), "owned\n").unwrap();
    let error = esatto_protozero_codegen::sync(&root, true).unwrap_err().to_string();
    assert!(error.ends_with("codegen.conf:1: unknown directive or wrong number of words: `owned`"), "{error}");
    std::fs::remove_dir_all(&root).unwrap();
}
