//! A service of gRPC without generated code, and what tests of calls between two processes need.

#![forbid(unsafe_code)]

pub mod echo;
pub mod recording;

/// The code of the page about calls.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/rpc-calls.md")]
pub struct RpcCalls;
