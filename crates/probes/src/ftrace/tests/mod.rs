//! Tests of pages that become packets, from recorded and from hand-made pages.

mod fields;
mod page_builder;
mod pages;
mod recorded;
mod session;

pub(super) use session::Session;
