//! The service as its owner sees it: inputs in, outputs out.

mod captures;
mod clone_triggers;
mod cloned_files;
mod clones;
mod faults;
mod files;
mod hostile;
mod machines;
mod reading;
mod replies;
mod sessions;
mod simulator;
mod triggers;
mod world;
