//! Generated code against prost's, of the same random schemas.
//!
//! The build script makes up `.proto` files and compiles them with both generators. [`CASES`] lists
//! their messages; [`Case::run`] makes up values of one, and lets each side read the bytes of the
//! other. A difference is a panic that names the field.
//!
//! `ESATTO_CONFORMANCE_SEED` and `ESATTO_CONFORMANCE_SCHEMAS` (while building) make other or more
//! schemas, `ESATTO_CONFORMANCE_VALUES` more values; `cargo xtask soak conformance` sets them all.

#![forbid(unsafe_code)]

mod case;
mod random;
mod rng;

pub use case::{Case, Pair};
pub use generated::{CASES, SCHEMA_SEED};
pub use random::Random;

#[allow(missing_docs, unused, unused_qualifications, unreachable_pub, unnameable_types, clippy::all, clippy::use_self)]
mod generated {
    use std::collections::BTreeMap;

    use esatto_protozero::Lookup;

    use crate::case::{Case, Pair, case, unless_default};
    use crate::random::Random;

    pub mod ours {
        include!(concat!(env!("OUT_DIR"), "/ours.rs"));
    }

    pub mod theirs {
        include!(concat!(env!("OUT_DIR"), "/theirs/mod.rs"));
    }

    include!(concat!(env!("OUT_DIR"), "/glue.rs"));
}
