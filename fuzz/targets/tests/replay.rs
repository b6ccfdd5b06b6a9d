//! Every file of the corpora, without a fuzzer.

use std::path::Path;

use esatto_fuzz_targets::TARGETS;

/// One test per target, or a new target would have no test.
macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name), esatto_fuzz_targets::$name);
        })*

        #[test]
        fn every_target_is_replayed() {
            let names: Vec<&str> = TARGETS.iter().map(|&(name, _)| name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

targets! {
    buffer
    chrome_json
    codegen_plugin
    consumer_frames
    fidl_decode
    fidl_ir
    fidl_schema
    fidl_transport
    filter_bytecode
    filter_message
    filter_strings
    ftrace_changes
    ftrace_format
    ftrace_pages
    ftrace_statistics
    ftrace_symbols
    ipc_frames
    ipc_host
    probes_journal
    probes_mountinfo
    probes_process_smaps
    probes_process_stats
    probes_sys_stats
    probes_system_info
    producer_frames
    protozero_fields
    protozero_framing
    protozero_index
    protozero_owned
    protozero_write
    rpc_call
    rpc_client
    rpc_frames
    rpc_server
    service
    service_commit
    service_shm
    shm_chunk_data
    shm_region
    text_format
    trace_archive
    trace_engine
    trace_file
    trace_packet
}

fn replay(name: &str, target: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(name);
    let mut files: Vec<_> = std::fs::read_dir(&corpus)
        .unwrap_or_else(|error| panic!("{}: {error}", corpus.display()))
        .map(|entry| entry.expect("a folder that can be listed").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", corpus.display());
    for file in files {
        // Captured when the test fails: the last line names the culprit.
        println!("{}", file.display());
        let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        target(&bytes);
    }
    target(&[]);
}
