//! Perfetto's messages as prost makes them, with prost's defaults.

#![allow(warnings, clippy::all)]

include!(concat!(env!("OUT_DIR"), "/perfetto.protos.rs"));
