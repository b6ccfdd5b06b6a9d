//! A fixed number of mutations of known inputs for every target, without a fuzzer.
//!
//! libFuzzer mutates better, because it sees which code an input reaches, but takes minutes. These
//! tests take seconds, do the same in every run, and begin with more: the corpus, and what real
//! programs wrote (`tests/captures`, `tests/traces`).

mod mutate;
mod random;
mod seeds;

use esatto_fuzz_targets::TARGETS;
use mutate::mutate;
use random::Random;

/// Longer inputs are cut, so that mutations are close to each other.
const MAX_INPUT: usize = 16 * 1024;
/// Inputs without a seed are shorter than this.
const MAX_RANDOM: u64 = 600;
/// One input in so many is random.
const RANDOM_ONE_IN: u64 = 10;

/// One test per target, so that they run in parallel.
macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            run(stringify!($name), esatto_fuzz_targets::$name);
        })*

        #[test]
        fn every_target_is_tested() {
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

fn run(name: &str, target: fn(&[u8])) {
    let seeds = seeds::of(name);
    assert!(!seeds.is_empty(), "{name} has no seeds");
    for (origin, bytes) in &seeds {
        // Printed if the test fails: the last line names the input.
        println!("{origin}");
        target(bytes);
    }
    let rounds = std::env::var("ESATTO_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let mut random = Random::new(1);
    for round in 0..rounds {
        if random.below(RANDOM_ONE_IN) == 0 {
            println!("round {round}, random bytes");
            let len = random.below(MAX_RANDOM);
            target(&(0..len).map(|_| random.byte()).collect::<Vec<u8>>());
            continue;
        }
        let (origin, bytes) = &seeds[random.below(seeds.len() as u64) as usize];
        let start = random.below(bytes.len().saturating_sub(MAX_INPUT) as u64 + 1) as usize;
        let mut bytes = bytes[start..bytes.len().min(start + MAX_INPUT)].to_vec();
        mutate(&mut bytes, &mut random);
        println!("round {round}, {origin}");
        target(&bytes);
    }
}
