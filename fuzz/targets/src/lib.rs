//! Entry points of the fuzzers: one function per parser of foreign bytes.
//!
//! None of them may panic or grow without bound, whatever the bytes are. `tests/replay.rs` calls
//! them with the files of `fuzz/corpus/`, so that seeds and findings stay tested without a fuzzer.

mod bytes;
mod codegen;
mod filter;
mod frames;
mod memory;
mod protozero;
mod script;
mod service;
mod text_format;
mod writing;

pub use codegen::codegen_plugin;
pub use esatto_ipc::frame::fuzz_decode as ipc_frames;
pub use esatto_ipc::host::fuzz_host as ipc_host;
pub use esatto_service::fuzz::{fuzz_buffer as buffer, fuzz_commit as service_commit};
pub use esatto_shm::fuzz_chunk_data as shm_chunk_data;
pub use esatto_shm::fuzz_service_region as shm_region;
pub use esatto_trace::fuzz_file as trace_file;
pub use esatto_trace::fuzz_packet as trace_packet;
pub use filter::{filter_bytecode, filter_message, filter_strings};
pub use frames::{consumer_frames, producer_frames};
pub use memory::service_shm;
pub use protozero::{protozero_fields, protozero_framing, protozero_index, protozero_owned};
pub use service::service;
pub use text_format::text_format;
pub use writing::protozero_write;

/// A target by its name, which is also its folder in `fuzz/corpus/`.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 22] = [
    ("buffer", buffer),
    ("codegen_plugin", codegen_plugin),
    ("consumer_frames", consumer_frames),
    ("filter_bytecode", filter_bytecode),
    ("filter_message", filter_message),
    ("filter_strings", filter_strings),
    ("ipc_frames", ipc_frames),
    ("ipc_host", ipc_host),
    ("producer_frames", producer_frames),
    ("protozero_fields", protozero_fields),
    ("protozero_framing", protozero_framing),
    ("protozero_index", protozero_index),
    ("protozero_owned", protozero_owned),
    ("protozero_write", protozero_write),
    ("service", service),
    ("service_commit", service_commit),
    ("service_shm", service_shm),
    ("shm_chunk_data", shm_chunk_data),
    ("shm_region", shm_region),
    ("text_format", text_format),
    ("trace_file", trace_file),
    ("trace_packet", trace_packet),
];
