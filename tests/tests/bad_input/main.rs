//! Nonsense on the sockets and in shared memory. The sender gets an error or is disconnected, the
//! log has a line, nothing panics, and other clients do not notice (`docs/spec/wire-protocol.md`
//! §2, §4, §21).

mod attacker;

mod a_refused_config_is_answered_with_a_reason;
mod broken_frames_are_dropped;
mod hostile_memory_is_handled_as_sections_18_and_19_say;
mod hostile_peers_are_handled_as_section_21_requires;
mod nonsense_calls_are_rejected;
mod offered_memory_is_adopted_only_if_it_is_safe;
mod replies_are_those_of_the_reference;
mod shared_memory_may_hold_anything;
mod the_checklist_of_section_22_holds;
mod unknown_fields_of_a_config_are_kept;
