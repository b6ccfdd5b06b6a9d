//! Tests of the RPC library. Each module is one promise.

mod calls_end_to_end;
#[allow(missing_docs, reason = "generated")]
mod messages {
    include!("sample/messages.rs");
}
mod sample_store;
mod store;
