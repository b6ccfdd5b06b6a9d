//! The library as programs see it: its symbols, and programs in C and C++ that are linked with it.

mod a_child_is_off;
mod build;
mod data_sources_record;
mod headers_compile_in_c_and_cxx;
mod macros_record_what_they_say;
mod programs_without_a_service;
mod sessions_have_what_they_want;
mod symbols_are_those_of_the_contract;
mod trace_points_do_not_allocate;
mod track_events_are_read_as_they_were_written;
mod who_waits_for_whom;
