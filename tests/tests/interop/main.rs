//! Conversations between our programs and Perfetto's: every combination must leave the same trace.

mod a_compressed_trace_is_whole;
mod a_container_has_the_pid_that_the_system_sees;
mod a_trace_streamed_into_its_file_is_whole;
mod every_event_is_in_the_trace;
mod our_service_makes_the_traces_of_theirs;
mod the_checker_notices_missing_events;
