//! Attacks on the real programs, beside a bystander whose every packet is compared: no stranger
//! stops a daemon, and none harms another client.

mod a_config_that_fits_no_command_is_refused;
mod a_descriptor_whose_close_blocks_stops_nobody;
mod a_long_name_hurts_only_who_has_it;
mod a_packet_that_nobody_can_take_is_dropped_alone;
mod a_service_may_pass_descriptors_that_do_not_close;
mod a_turn_ends_when_enough_was_done;
mod buffers_leave_memory_to_the_machine;
mod chunks_may_come_in_the_worst_order;
mod descriptors;
mod every_data_source_is_in_the_state;
mod fields_of_the_service_cannot_be_forged;
mod idle_memory_is_not_used_up_by_flushes;
mod memory_of_a_strange_service_cannot_vanish;
mod memory_that_vanishes_costs_only_its_producer;
mod one_user_cannot_take_all_there_is;
mod registrations_leave_instances_for_newcomers;
mod regular_expressions_cost_little;
mod statistics_fit_into_a_reply;
mod strange_services_in_tmp_are_refused;
mod strangers;
mod the_service_reads_no_file_for_others;
mod users;
