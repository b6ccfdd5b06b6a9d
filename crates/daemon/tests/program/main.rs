//! The program `traced`: one file per promise.

mod lab;

mod a_manager_is_told_how_it_goes;
mod a_mistake_is_one_line_and_status_1;
mod a_signal_completes_files;
mod access_is_what_was_asked_for;
mod descriptors_may_run_out;
mod it_goes_into_the_background;
mod it_has_one_thread;
mod it_listens_where_it_is_told;
#[path = "../../../../tests/src/skip.rs"]
#[allow(unreachable_pub, reason = "shared with the tests of the whole system")]
mod skip;
mod sockets_are_inherited;
