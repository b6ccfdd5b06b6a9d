//! Several machines: relays, their producers, and services that know the machine of each packet.

mod a_producer_over_tcp_loses_nothing;
mod a_relay_is_a_daemon;
mod a_shared_secret_is_proved;
mod a_tunnel_protects_a_relay;
mod clocks_of_two_machines_are_aligned;
mod empty_recordings_name_other_machines;
mod guest;
mod info_agrees_with_the_trace_processor;
mod machines_of_a_recording_are_told;
mod network;
mod network_namespaces_are_machines;
mod perfettos_own_relay_is_understood;
mod producers_of_a_relay_are_recorded_whole;
mod vsock_works_like_tcp;
