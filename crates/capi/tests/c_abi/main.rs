//! The library as programs see it, in both flavours: its symbols, and programs in C and C++ that are linked with it. `cases` are the rows of
//! `docs/spec/c-abi.md` §19.

mod a_child_is_off;
mod a_program_that_others_record_may_end_any_time;
mod build;
mod cases;
mod flavour;
mod headers_compile_in_c_and_cxx;
mod macros_record_what_they_say;
mod memcheck_finds_nothing;
mod run;
mod shared_objects_trace_with_the_programs_library;
mod symbols_are_those_of_the_contract;
mod test_events;
mod there_are_so_many_types_of_data_sources;
mod trace_points_do_not_allocate;
mod track_events_are_read_as_they_were_written;
mod v59_has_more;
