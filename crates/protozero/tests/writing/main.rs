//! Tests of writing (`docs/spec/protozero.md` §§1-7). Cases of its §16 are named after their
//! number.

#![forbid(unsafe_code)]

mod any_message_into_any_buffers;
mod chunks;
mod encoding_primitives;
mod guards;
mod larger_than_any_buffer;
mod leaks_and_hostile_delegates_void_whole_messages;
mod nesting;
mod panics_leave_sinks_usable;
mod streams_and_buffers;
