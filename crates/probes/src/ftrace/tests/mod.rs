//! Tests of pages that become packets, from recorded and from hand-made pages.

mod recorded;
mod session;

pub(super) use session::Session;
