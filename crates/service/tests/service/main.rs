//! The service as its owner sees it: inputs in, outputs out.

mod admission;
mod bounds;
mod captures;
mod clone_storms;
mod clone_triggers;
mod cloned_files;
mod clones;
#[cfg(all(feature = "deflate", feature = "zstd"))]
mod compression;
mod config_fields;
mod consumers;
mod data_sources;
mod enabling;
mod faults;
mod files;
#[cfg(feature = "regex")]
mod filtering;
mod flushes;
mod frames;
mod hostile;
mod machines;
mod missing_features;
mod opening;
mod reading;
mod replies;
mod scraping;
mod session_ends;
mod sessions;
mod shared_memory;
mod shares;
mod triggers;
mod world;
