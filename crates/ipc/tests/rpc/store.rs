//! Bindings of the service `Store` of `sample/store.proto`.

pub(crate) use crate::messages::sample::store::*;
