//! Promises of the SDK, with each backend, before Perfetto's trace processor; `case_NN_…` are the rows of
//! `docs/spec/client-library.md` §20. How to write one: `esatto_tests::sdk`.

mod a_scenario_is_a_program_of_its_own;
