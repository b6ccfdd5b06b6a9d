use esatto_protozero_codegen::Config;

use crate::Folder;

#[test]
fn a_field_needs_the_feature_of_its_type() {
    let folder = Folder::new("feature");
    let write = |name: &str, text: &str| std::fs::write(folder.0.join(name), text).unwrap();
    write("extra.proto", "syntax = \"proto3\"; package x; message Extra {}");
    write(
        "x.proto",
        "syntax = \"proto3\"; package x; import \"extra.proto\"; message M { Extra one = 1; map<int32, Extra> many = 2; int32 plain = 3; }",
    );
    let config = Config::new().owned("x.proto").feature("extra", "extra.proto");
    let output = config.compile(&["x.proto"], &[&folder.0]).unwrap();
    let (_, text) =
        output.files().iter().find(|(path, _)| path.ends_with("x.rs") && !path.ends_with("mod.rs")).unwrap();

    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let gated = |start: &str| {
        let found: Vec<usize> = (1..lines.len()).filter(|&i| lines[i].starts_with(start)).collect();
        assert!(!found.is_empty(), "{start} is not in\n{text}");
        found.iter().all(|&i| lines[..i].iter().rev().take(2).any(|line| *line == "#[cfg(feature = \"extra\")]"))
    };
    for start in ["pub one:", "pub many:", "1 => ", "2 => ", "pub fn one(", "pub fn many("] {
        assert!(gated(start), "{start} in\n{text}");
    }
    assert!(!gated("pub plain:") && !gated("3 => "), "{text}");
}
