//! Tests of the transport. Each module is one promise.

mod back_pressure_and_bounds_hold;
mod calls_over_a_socket;
mod captured_conversations_can_be_replayed;
mod captured_requests_get_the_captured_answers;
mod captures;
mod captures_decode_in_pieces_of_any_size;
mod clients_tolerate_odd_services;
mod connecting_does_not_wait;
mod descriptors_never_leak;
mod frames_are_bounded;
mod garbage_never_panics;
mod hosts_answer_by_the_table;
mod identities_cannot_be_forged_locally;
mod listeners_do_not_steal_sockets;
mod real_services_understand_our_clients;
#[path = "../../../../tests/src/skip.rs"]
#[allow(unreachable_pub, reason = "shared with the tests of the whole system")]
mod skip;
