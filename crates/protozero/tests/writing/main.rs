//! What the writers promise (`docs/spec/protozero.md` §§1-7); cases of its §16 are named after their number.

#![forbid(unsafe_code)]

mod any_message_into_any_buffers;
mod chunks;
mod encoding_primitives;
mod guards;
mod hostile_delegates_and_leaks_void_whole_messages;
mod larger_than_any_buffer;
mod leaked_and_panicking_guards;
mod nesting;
mod streams_and_buffers;
