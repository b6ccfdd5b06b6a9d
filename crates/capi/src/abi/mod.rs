//! The ABI: layouts of structs, numbers and types of callbacks that programs were compiled with.

mod callbacks;
mod layout;
pub(crate) mod numbers;
mod variants;

pub(crate) use callbacks::*;
pub(crate) use layout::*;
pub(crate) use variants::*;
