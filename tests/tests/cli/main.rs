//! Commands as a user types them, and their effects.

mod a_command_is_recorded_until_it_ends;
mod a_trace_is_summed_up;
mod failed_recordings_keep_existing_files;
mod losses_of_other_sessions_are_not_reported;
mod mistakes_are_named;
mod nothing_acts_on_the_terminal;
mod overwritten_rings_are_no_loss;
mod programs_that_do_not_answer_are_in_the_report;
mod slow_programs_get_the_time_of_the_config;
mod the_demo_counts_like_the_trace_processor;
mod traced_is_a_daemon;
