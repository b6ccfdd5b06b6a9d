//! Tests of the message filter. Each file is one promise.
mod bytecode_allows_listed_fields_only;
mod bytecode_that_is_wrong_is_refused;
mod compiled_schemas_are_those_of_upstream;
mod compressed_packets_are_filtered;
mod filtering_follows_a_simple_model;
mod hostile_patterns_end;
mod malformed_messages_are_emptied;
mod patterns_are_ecmascript;
mod results_are_those_of_upstream;
mod strings_are_redacted_by_rules;
mod the_command_compiles_and_applies;
mod usage_is_counted_by_path;
mod util;
