//! Tests of pages that become packets, from recorded and from hand-made pages.

mod fields;
mod kernel_tracefs;
mod page_builder;
mod pages;
mod recorded;
mod recording;
mod session;
mod special;
mod test_folder;

pub(super) use session::Session;
pub(crate) use test_folder::TestFolder;
