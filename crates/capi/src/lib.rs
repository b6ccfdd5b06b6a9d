//! The C ABI of Perfetto's tracing library, `libperfetto_c`, over Esatto's SDK.
//!
//! The contract is `docs/spec/c-abi.md`. The modules here translate between C and the SDK, which
//! does the work. `README.md` describes the library for its users.
//!
//! Two packages build this code: `esatto-capi` for v58 of the ABI, and `esatto-capi-v59`, whose
//! build script sets `perfetto_v59`. Only `v58.rs`, `v59.rs` and one struct of `abi` differ.
//!
//! The modules, bottom to top; each may use those before it:
//!
//! 1. `ffi`: pointers that programs pass; `diagnostics`; `abi`: layouts; `panic_guard`
//! 2. `thread_id`, `timestamps`, `initialised`, `data_symbols`, `decoder`
//! 3. `on_flushed`, `stream`: memory that programs write to; `program_state`; `tracer`: the trace
//!    point of a thread
//! 4. `category`, `data_source`, `high_level` and `low_level`: track events; `session`, `producer`
//! 5. `v58` or `v59`

#![allow(non_snake_case, reason = "the names of the ABI")]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

mod abi;
mod category;
mod data_source;
mod data_symbols;
mod decoder;
mod diagnostics;
mod ffi;
mod high_level;
mod initialised;
mod low_level;
mod on_flushed;
mod panic_guard;
mod producer;
mod program_state;
mod session;
mod stream;
#[cfg(test)]
mod tests;
mod thread_id;
mod timestamps;
mod tracer;
#[cfg(not(perfetto_v59))]
mod v58;
#[cfg(perfetto_v59)]
mod v59;
