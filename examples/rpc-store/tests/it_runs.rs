//! The example prints the promised result.

#[test]
fn it_stores_finds_lists_and_forgets() {
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_esatto-example-rpc-store")).output().expect("it starts");
    let expected = "\
tea: green
listed: tea
listed: tee
Store.Get failed: no text for \"tea\" (NOT_FOUND)
";
    assert_eq!(String::from_utf8_lossy(&run.stdout), expected, "{}", String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success());
}
