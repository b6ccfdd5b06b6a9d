//! A service of gRPC without generated code, a service of traced bindings, and what tests of calls
//! between two processes need.

#![forbid(unsafe_code)]

pub mod echo;
pub mod flows;
pub mod ports;
pub mod recording;
pub mod shop;
pub mod wiretap;
pub mod yard;

/// The code of the page about calls.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/rpc-calls.md")]
pub struct RpcCalls;
