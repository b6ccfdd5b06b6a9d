//! Files that are read as one trace.
//!
//! [`Inputs`] opens traces, compressed ones, Chrome JSON, and archives (zip, tar) of these, with or
//! without a manifest that relates machines and clocks. Each trace in it is a [`Member`], which is
//! read as packets whatever its format. [`write_archive`] writes such an archive.
//!
//! ```no_run
//! use esatto_inputs::Inputs;
//!
//! let inputs = Inputs::open(&["client-and-server.zip".into()])?;
//! let (engine, _) = inputs.read()?;
//! println!("{} slices", engine.tables.slice.ts.len());
//! # Ok::<(), esatto_inputs::Error>(())
//! ```
//!
//! Archives may be hostile. Their entries are read while they are inflated, and never written to a
//! file of their name. An archive that is itself compressed, or that comes from a pipe, takes a
//! temporary file without a name. The number of entries, the length of names and the bytes to which
//! data inflates are bounded.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

mod archive;
mod archive_writer;
mod error;
mod file_kind;
mod inflate;
mod inputs;
mod manifest;
mod member;
mod section;
mod temporary;

pub use archive::{MAX_ENTRIES, MAX_NAME_BYTES};
pub use archive_writer::{ArchiveFile, ArchiveKind, manifest_text, write_archive};
pub use error::Error;
pub use file_kind::{FileKind, beginning, is_trace_of_service, may_be_trace};
pub use inputs::{Inputs, Options};
pub use manifest::{MAX_MANIFEST_BYTES, read_manifest};
pub use member::{Losses, Member, MemberReader, json_losses};
