//! The C ABI of Perfetto's tracing library, `libperfetto_c`, on Esatto's SDK.
//!
//! The contract is `docs/spec/c-abi.md`. What the SDK does is done there: the modules here translate. See `README.md` for what is where.

#![allow(non_snake_case, reason = "the names of the ABI")]

mod abi;
mod category;
mod data_source;
mod decoder;
mod flavour;
mod guard;
mod heap;
mod high_level;
mod low_level;
mod packet;
mod producer;
mod session;
mod statics;
mod stream;
#[cfg(test)]
mod tests;
mod text;
mod thread;
mod tracer;
