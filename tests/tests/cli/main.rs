//! Commands as a user types them, and their effects.

mod a_command_is_recorded_until_it_ends;
mod a_trace_is_summed_up;
mod files_that_were_there_stay;
mod mistakes_are_named;
mod nothing_acts_on_the_terminal;
mod traced_is_a_daemon;
