//! Promises of the SDK, with each backend, before Perfetto's trace processor; `case_NN_…` are the
//! rows of `docs/spec/client-library.md` §20. How to write one: `esatto_tests::sdk`.

mod a_fork_disturbs_neither_side;
mod a_ninth_session_gets_nothing;
mod a_scenario_is_a_program_of_its_own;
mod a_service_may_lie;
mod a_slow_reader_gets_the_whole_trace;
mod a_whole_program_is_traced_into_a_file;
mod case_01_before_initialisation;
mod case_02_several_backends;
mod case_03_the_systems_consumer_is_left_out;
mod case_06_a_missing_backend_is_reported;
mod case_15_the_33rd_data_source_is_an_error;
mod case_21_losses_are_counted;
mod case_22_blocking_start_and_stop;
mod case_23_the_start_callback;
mod case_24_the_error_callback;
mod case_25_the_service_writes_a_file;
mod case_26_flush_then_read;
mod case_27_stats_and_state;
mod case_28_clones;
mod case_37_packets_can_be_intercepted;
mod custom_data_sources_record_any_packet;
mod lost_trace_files_are_told;
mod names_may_hold_nul;
mod producers_can_be_driven_by_the_program;
mod producers_have_their_wishes;
mod rings_keep_the_names_of_their_events;
mod sessions_can_be_awaited;
mod sessions_record_a_program_that_has_just_begun;
mod sessions_wait_for_triggers;
mod shutdown_leaves_nothing_behind;
mod the_first_events_of_a_dying_program_are_kept;
mod the_start_of_a_program_is_in_the_trace;
mod track_events;
mod two_copies_do_not_disturb_each_other;
mod two_copies_end_by_one_signal;
mod very_many_categories_are_recorded;
mod wrong_permissions_are_explained;

use esatto::schema::TracePacketReader;
use esatto_tests::sdk::Trace;

/// Texts of the test events, in the order of the trace.
fn texts(trace: &Trace) -> Vec<String> {
    let text = |packet: &[u8]| {
        let text = TracePacketReader::new(packet).for_testing()?.str()?.to_vec();
        Some(String::from_utf8(text).expect("is text"))
    };
    trace.packets().iter().filter_map(|packet| text(&packet.bytes)).collect()
}
