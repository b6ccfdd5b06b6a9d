//! The library as programs see it, in both versions: its symbols, and programs in C and C++ that
//! are linked with it. `cases` are the rows of `docs/spec/c-abi.md` §19.

mod a_forked_child_is_off;
mod a_program_may_end_while_a_service_records_it;
mod abi_version;
mod build;
mod cases;
mod data_source_types_are_limited;
mod headers_compile_in_c_and_cxx;
mod macros_record_their_events;
mod memcheck_finds_nothing;
mod pieces_of_a_trace_are_one_together;
mod programs_for_v59_work;
mod run;
mod shared_objects_trace_with_the_programs_library;
mod slices_end_on_their_thread;
mod slices_in_c_end_with_their_block;
mod symbols_are_those_of_the_contract;
mod test_events;
mod trace_points_do_not_allocate;
mod track_events_are_read_as_they_were_written;
mod tracks_below_groups_are_shown;
mod tracks_follow_the_process;
mod tracks_of_levels_are_apart;
mod unregistered_categories_are_told;
mod wrong_tracks_are_told;
