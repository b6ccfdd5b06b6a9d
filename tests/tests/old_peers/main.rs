//! Peers of another age (`docs/spec/wire-protocol.md` §18, `docs/spec/shared-memory.md` §20):
//! clients with only the features of the first release, and services that lack later features.
//!
//! | step | test |
//! | --- | --- |
//! | Android 9: five methods on each port, no acknowledgements, no RegisterTraceWriter, set-up ignored | `…of_the_first_release` |
//! | Android 10: acknowledged start and stop, clearing of incremental state | `acknowledgements_…`, `incremental_state_…` |
//! | Android 11, v4: memory of the producer | `bad_input`: `row_22_18_…` to `row_22_20_…` |
//! | up to v37: lengths of four bytes | `…of_the_first_release` |
//! | up to v40: no empty fragment behind the last packet, 1023 packets in a chunk | `chunks_of_old_writers_…` |
//! | v9, v16, v22, v37, v38: fields and methods that an old client does not send | `…of_the_first_release` |
//! | an old service without a method, with other numbers, without a field | `old_services` |
//! | captured conversations with v15 clients | `captured_clients`; without sockets `crates/service/tests/service/captures.rs` |
//! | captured answers of a v15 service | `crates/ipc/tests/ipc/captured_conversations_can_be_replayed.rs` |

mod captured_clients;
mod old_clients;
mod old_services;
