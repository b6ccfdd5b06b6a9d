//! Promises of the SDK, with each backend, before Perfetto's trace processor; `case_NN_…` are the rows of
//! `docs/spec/client-library.md` §20. How to write one: `esatto_tests::sdk`.

mod a_scenario_is_a_program_of_its_own;
mod case_22_blocking_start_and_stop;
mod case_23_the_start_callback;
mod case_24_the_error_callback;
mod track_events;
