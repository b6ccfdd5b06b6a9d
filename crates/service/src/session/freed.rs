//! Freed sessions whose trace file is not complete yet (`docs/spec/service.md §18`).

use super::Session;
use crate::api::CallId;

/// A freed session.
#[derive(Debug)]
pub(crate) struct FreedSession {
    pub(crate) session: Session,
    /// The EnableTracing call that the service answers when the file is complete.
    pub(crate) notice: Option<CallId>,
}
