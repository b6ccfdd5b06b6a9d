//! The functions that the fuzzers call: one per parser of foreign bytes.
//!
//! Each takes any bytes. It must not panic, and its memory must stay bounded. `tests/replay.rs`
//! calls them with the files of `fuzz/corpus/`, `tests/mutations` with mutations of these files and
//! of real captures, so that all targets are tested without a fuzzer.

mod archive;
mod buffer;
mod bytes;
mod changing_memory;
mod codegen;
mod commit;
mod convert;
mod edit;
mod fidl;
mod fidl_transport;
mod filter;
mod frames;
mod ftrace;
mod ipc;
mod memory;
mod probes;
mod protozero;
mod rpc_call;
mod rpc_frames;
mod rpc_typed;
mod script;
mod service;
mod shared_memory;
mod text_format;
mod trace;
mod writing;

pub use archive::trace_archive;
pub use buffer::buffer;
pub use codegen::codegen_plugin;
pub use commit::service_commit;
pub use convert::chrome_json;
pub use fidl::{fidl_decode, fidl_ir, fidl_schema};
pub use fidl_transport::fidl_transport;
pub use filter::{filter_bytecode, filter_message, filter_strings};
pub use frames::{consumer_frames, producer_frames};
pub use ftrace::{ftrace_changes, ftrace_format, ftrace_pages, ftrace_statistics, ftrace_symbols};
pub use ipc::{ipc_frames, ipc_host};
pub use memory::service_shm;
pub use probes::{
    probes_journal, probes_mountinfo, probes_process_smaps, probes_process_stats, probes_sys_stats, probes_system_info,
};
pub use protozero::{protozero_fields, protozero_framing, protozero_index, protozero_owned};
pub use rpc_call::rpc_call;
pub use rpc_frames::rpc_frames;
pub use rpc_typed::{rpc_client, rpc_server};
pub use service::service;
pub use shared_memory::{shm_chunk_data, shm_region};
pub use text_format::text_format;
pub use trace::{trace_engine, trace_file, trace_packet};
pub use writing::protozero_write;

/// A target by its name, which is also its folder in `fuzz/corpus/`.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 44] = [
    ("buffer", buffer),
    ("chrome_json", chrome_json),
    ("codegen_plugin", codegen_plugin),
    ("consumer_frames", consumer_frames),
    ("fidl_decode", fidl_decode),
    ("fidl_ir", fidl_ir),
    ("fidl_schema", fidl_schema),
    ("fidl_transport", fidl_transport),
    ("filter_bytecode", filter_bytecode),
    ("filter_message", filter_message),
    ("filter_strings", filter_strings),
    ("ftrace_changes", ftrace_changes),
    ("ftrace_format", ftrace_format),
    ("ftrace_pages", ftrace_pages),
    ("ftrace_statistics", ftrace_statistics),
    ("ftrace_symbols", ftrace_symbols),
    ("ipc_frames", ipc_frames),
    ("ipc_host", ipc_host),
    ("probes_journal", probes_journal),
    ("probes_mountinfo", probes_mountinfo),
    ("probes_process_smaps", probes_process_smaps),
    ("probes_process_stats", probes_process_stats),
    ("probes_sys_stats", probes_sys_stats),
    ("probes_system_info", probes_system_info),
    ("producer_frames", producer_frames),
    ("protozero_fields", protozero_fields),
    ("protozero_framing", protozero_framing),
    ("protozero_index", protozero_index),
    ("protozero_owned", protozero_owned),
    ("protozero_write", protozero_write),
    ("rpc_call", rpc_call),
    ("rpc_client", rpc_client),
    ("rpc_frames", rpc_frames),
    ("rpc_server", rpc_server),
    ("service", service),
    ("service_commit", service_commit),
    ("service_shm", service_shm),
    ("shm_chunk_data", shm_chunk_data),
    ("shm_region", shm_region),
    ("text_format", text_format),
    ("trace_archive", trace_archive),
    ("trace_engine", trace_engine),
    ("trace_file", trace_file),
    ("trace_packet", trace_packet),
];
