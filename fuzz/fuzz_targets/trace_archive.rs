#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| esatto_fuzz_targets::trace_archive(bytes));
