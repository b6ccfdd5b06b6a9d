//! Tests of pages that become packets, from recorded and from hand-made pages.

mod fields;
mod kernel_tracefs;
mod page_builder;
mod pages;
mod recorded;
mod recording;
mod session;
<<<<<<< HEAD
mod test_folder;
=======
mod special;
>>>>>>> 1d179a5b (probes: test system calls, kernel probes and symbols)

pub(super) use session::Session;
pub(crate) use test_folder::TestFolder;
