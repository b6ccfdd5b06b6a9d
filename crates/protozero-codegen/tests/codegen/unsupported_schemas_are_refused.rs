use esatto_protozero_codegen::{Config, Error};

use crate::Folder;

fn generate(config: &Config, proto: &str) -> Result<(), Error> {
    let folder = Folder::new("refused");
    let write = |name: &str, text: &str| std::fs::write(folder.0.join(name), text).unwrap();
    let header = if proto.contains("edition =") { "" } else { "syntax = \"proto2\"; package x;\n" };
    write("x.proto", &format!("{header}{proto}"));
    write("other.proto", "syntax = \"proto3\"; package other; message O {} message P { O o = 1; }");
    config.compile(&["x.proto"], &[&folder.0]).map(drop)
}

#[test]
fn the_error_names_the_unsupported_item() {
    let plain = Config::new();
    let alone = Config::new().imports(false);
    for (config, proto, message) in [
        (&plain, "message M { optional group G = 1 {} }", "a group of `x.M` is not supported"),
        (
            &plain,
            "message M { extensions 1; } extend M { optional group G = 1 {} }",
            "a group of `x.g` is not supported",
        ),
        (&plain, "import weak \"other.proto\"; message M {}", "a weak import of `x.proto` is not supported"),
        (&plain.clone().owned(".x.N"), "message M {}", "`.x.N` matches no file and no message"),
        (&plain.clone().feature("f", "y.proto"), "message M {}", "`y.proto` matches no file and no message"),
        (&plain.clone().ungated("y.*"), "message M {}", "`y.*` matches no file and no message"),
        (&plain, "message M { optional N n = 1; }", "x.proto:2:22: name 'N' is not defined"),
        (&plain, "message M {\n  optional int32 = 1; }", "x.proto:3:18: expected an identifier"),
        (&plain, "import \"none.proto\";", "x.proto:2:1: import 'none.proto' not found"),
        (&plain, "edition = \"2023\"; message M {}", "x.proto:1:1: expected"),
        (
            &alone,
            "import \"other.proto\"; message M { optional other.O o = 1; }",
            "`x.M.o` uses `other.O` of `other.proto`, which is not among the files to generate",
        ),
    ] {
        let error = generate(config, proto).expect_err(proto).to_string();
        assert!(error.contains(message), "{proto}: {error}");
    }
}

#[test]
fn a_missing_file_is_an_error_with_the_searched_folders() {
    let folder = Folder::new("not-there");
    let here = folder.0.display();
    let search = |includes: &[&std::path::Path]| Config::new().compile(&["x.proto"], includes).unwrap_err().to_string();
    assert_eq!(search(&[]), "`x.proto` is in none of the folders (there are none)");
    assert_eq!(
        search(&[&folder.0, &folder.0.join("gone")]),
        format!("`x.proto` is in none of the folders `{here}`, `{here}/gone` (no such folder)")
    );
}

#[test]
fn a_build_script_prints_the_error_in_plain_text() {
    let error = Config::new().option("rot", "x").unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[test]
fn an_import_that_is_not_used_need_not_be_generated() {
    generate(&Config::new().imports(false), "import \"other.proto\"; message M {}").unwrap();
    let elsewhere = Config::new().external("other", "::other");
    generate(&elsewhere, "import \"other.proto\"; message M { optional other.O o = 1; }").unwrap();
}
