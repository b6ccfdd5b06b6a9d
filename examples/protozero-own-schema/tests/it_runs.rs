//! The example prints the promised result.

#[test]
fn it_writes_a_log_and_reads_it_back() {
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_esatto-example-own-schema")).output().expect("it starts");
    let expected = "\
86 bytes
1700000000.000 boiler started with {\"range\": \"0…120\", \"unit\": \"°C\"}
1700000001.500 sensor 7: [20, 21, -1]
fault FAULT_OVERHEATED
fault 17
";
    assert_eq!(String::from_utf8_lossy(&run.stdout), expected);
    assert!(run.status.success());
}
