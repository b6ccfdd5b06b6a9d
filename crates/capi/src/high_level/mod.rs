//! Track events that the library encodes (`docs/spec/c-abi.md` §11).
//!
//! The library reads the extras of an event once, into arguments of the SDK's trace points
//! (`extras`). The trace point is one of the SDK's, made when the library sees the first event of
//! its kind (`site_cache`).
//!
//! An event of a known kind allocates nothing, except if it has more than a dozen annotations, or
//! fields that have to be written one by one (`field_extra`).

mod emit;
mod extras;
mod field_extra;
mod inline_list;
mod proto_fields;
mod site_cache;
mod tracks;
