//! The service as its owner sees it: inputs in, outputs out.

mod captures;
mod sessions;
mod world;
