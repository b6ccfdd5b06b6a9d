//! Types that the generator makes of the schemas in `schemas/`.

#![forbid(unsafe_code)]

include!(concat!(env!("OUT_DIR"), "/fidl.rs"));
