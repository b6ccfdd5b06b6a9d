//! What is read from traces: real ones, hand-made ones and broken ones.

mod common;

mod annotations_of_every_kind;
mod broken_files_are_named_with_their_place;
mod events_of_real_traces;
mod garbage_never_panics;
mod hostile_files_cost_little;
mod numbers_agree_with_the_trace_processor;
mod reports_for_people_and_machines;
mod rules_of_sequences;
mod slices_flows_and_tracks;
mod zstd_is_read_as_deflate_is;
