//! The C ABI of Perfetto's tracing library as of v59: the code of `esatto-capi`, but for `flavour.rs`.

#![allow(non_snake_case, reason = "the names of the ABI")]

#[path = "../../capi/src/abi.rs"]
mod abi;
#[path = "../../capi/src/category.rs"]
mod category;
#[path = "../../capi/src/data_source/mod.rs"]
mod data_source;
#[path = "../../capi/src/decoder.rs"]
mod decoder;
mod flavour;
#[path = "../../capi/src/guard.rs"]
mod guard;
#[path = "../../capi/src/heap.rs"]
mod heap;
#[path = "../../capi/src/high_level/mod.rs"]
mod high_level;
#[path = "../../capi/src/low_level.rs"]
mod low_level;
#[path = "../../capi/src/packet.rs"]
mod packet;
#[path = "../../capi/src/producer.rs"]
mod producer;
#[path = "../../capi/src/session.rs"]
mod session;
#[path = "../../capi/src/statics.rs"]
mod statics;
#[path = "../../capi/src/stream.rs"]
mod stream;
#[cfg(test)]
#[path = "../../capi/src/tests.rs"]
mod tests;
#[path = "../../capi/src/text.rs"]
mod text;
#[path = "../../capi/src/thread.rs"]
mod thread;
#[path = "../../capi/src/tracer.rs"]
mod tracer;
