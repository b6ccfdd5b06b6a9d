//! Tests of the program `traced`, one file per promise.

mod harness;

mod a_session_is_two_lines_in_the_log;
mod a_signal_completes_trace_files;
mod an_error_is_one_line_and_status_1;
mod an_idle_daemon_has_one_thread;
mod background_mode_leaves_the_terminal;
mod connected_clients_are_served_without_free_descriptors;
mod metrics_are_written_for_prometheus;
mod silent_producers_are_named;
#[path = "../../../../tests/src/skip.rs"]
#[allow(unreachable_pub, reason = "shared with the tests of the whole system")]
mod skip;
mod socket_files_get_the_configured_access;
mod sockets_are_inherited;
mod the_last_statistics_are_in_the_trace;
mod the_service_manager_gets_messages;
mod traced_listens_on_configured_addresses;
