//! Categories of track events (`docs/spec/c-abi.md` §10).

mod any;
mod category_impl;
mod descriptor;
mod dynamic;
mod functions;

pub(crate) use category_impl::CategoryImpl;
pub(crate) use dynamic::dynamic_instances;
