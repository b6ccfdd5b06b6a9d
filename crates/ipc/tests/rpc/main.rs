//! Tests of the RPC library. Each module is one promise.

mod bad_neighbours;
mod calls_end_to_end;
mod clients_of_all_styles;
mod descriptors_of_calls;
mod drivers_rest;
mod every_transport;
mod hooks_see_calls_in_order;
mod hostile_clients;
mod hostile_services;
#[allow(missing_docs, reason = "generated")]
mod messages {
    include!("sample/messages.rs");
}
mod raw_peer;
mod sample_store;
mod servers_on_threads;
#[path = "../../../../tests/src/skip.rs"]
#[allow(unreachable_pub, reason = "shared with the tests of the whole system")]
mod skip;
mod store;
mod tokio_waits;
