//! The encoders beside Esatto.

pub(crate) mod prost;
