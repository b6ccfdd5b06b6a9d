//! Peers that break the rules, on sockets of packets and streams: the connection ends with an
//! error that says why, other connections go on, and no descriptor stays open.

#![allow(missing_docs, reason = "tests")]

mod clients;
mod raw;
mod servers;
