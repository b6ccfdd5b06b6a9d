#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esatto_tests::fuzz::run("commit", data));
