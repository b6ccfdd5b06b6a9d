//! Resources that a new session waits for, and the calls that come meanwhile.

use crate::api::CallId;
use crate::priority_boost::ChangeId;

/// What a session still lacks, and what its consumer asked for in the meantime.
#[derive(Debug, Default)]
pub(crate) struct PendingResources {
    /// The change of priority it waits for.
    pub(crate) priority: Option<ChangeId>,
    /// Where its file is to be created.
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
