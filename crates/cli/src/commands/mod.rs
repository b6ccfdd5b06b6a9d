//! Commands of `esatto`, one module per command.

pub(crate) mod attach;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod cut;
pub(crate) mod demo;
pub(crate) mod dump;
pub(crate) mod info;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod merge;
mod merge_archive;
pub(crate) mod query;
pub(crate) mod record;
pub(crate) mod redact;
pub(crate) mod report;
pub(crate) mod sessions;
pub(crate) mod snapshot;
pub(crate) mod top;
pub(crate) mod trigger;
pub(crate) mod ui_bridge;
pub(crate) mod view;
