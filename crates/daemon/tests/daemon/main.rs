//! The daemon over real sockets: one file per promise.

mod fuse;
mod lab;

mod a_blocked_file_does_not_stop_the_service;
mod a_file_whose_close_never_ends_stops_nobody;
mod a_producer_that_never_reads_is_disconnected;
mod a_relay_forwards_producers;
mod a_slow_reader_gets_the_whole_trace;
mod nobody_waits_for_a_flood;
mod producers_elsewhere_get_no_shared_memory;
mod relays_are_served_where_they_are_wanted;
mod stopping_leaves_nothing_behind;
mod the_last_commits_of_a_dying_producer_are_kept;
mod trace_files_are_written_by_the_service;
mod what_waits_for_all_clients_is_bounded;
