//! Programs that die: each death keeps everyone else's data and leaves a readable trace.

mod a_consumer_that_vanishes_ends_only_its_own_session;
mod a_disk_that_hangs_is_told;
mod a_failed_write_keeps_what_was_in_the_file;
mod a_full_disk_ends_a_recording_with_its_reason;
mod a_producer_killed_in_a_write_loses_only_its_last_events;
mod a_producer_outlives_its_service;
mod a_producer_that_dies_does_not_hold_up_a_flush;
mod losses_are_told_in_the_log;
