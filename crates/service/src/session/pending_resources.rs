//! Resources that a new session waits for, and the calls that come meanwhile.

use crate::api::CallId;
use crate::priority_boost::ChangeId;

/// The resources that a session waits for, and the calls that came meanwhile.
#[derive(Debug, Default)]
pub(crate) struct PendingResources {
    /// The change of priority that it waits for.
    pub(crate) priority: Option<ChangeId>,
    /// The path of the file that the owner has to create.
    pub(crate) path: Option<Vec<u8>>,
    /// The file came with the call.
    pub(crate) is_adopted: bool,
    /// StartTracing was called.
    pub(crate) starts: bool,
    /// DisableTracing was called.
    pub(crate) stops: bool,
    /// FreeBuffers was called, or the consumer is gone.
    pub(crate) frees: bool,
    /// The EnableTracing call of a consumer that called FreeBuffers, and may have another session
    /// by now.
    pub(crate) enable_call: Option<CallId>,
}
