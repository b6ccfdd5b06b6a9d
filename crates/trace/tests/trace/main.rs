//! Tests of the reader with real, hand-made and broken traces.

mod common;

mod annotations_of_every_kind;
mod engine_bears_hostile_messages;
mod engine_bears_hostile_traces;
mod errors_name_the_place_in_the_file;
mod events_of_real_traces;
mod hostile_files_cost_little;
mod incremental_state_of_sequences;
mod numbers_agree_with_the_trace_processor;
mod packets_compressed_with_zstd_are_read;
mod several_machines;
mod slices_flows_and_tracks;
mod states_of_tracks;
mod summaries_as_text_and_json;
