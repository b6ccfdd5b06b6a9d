//! Calls to the service and their answers, before they become frames or function calls.

use std::sync::Arc;

use esatto_shm::Memory;

use crate::os::{ForeignFd, OwnedFd};

/// A method to invoke. `tag` comes back with the replies.
#[derive(Debug)]
pub(crate) struct Call<T> {
    pub(crate) method: &'static str,
    pub(crate) args: Vec<u8>,
    /// What to do with the replies; `None` asks the service not to reply.
    pub(crate) tag: Option<T>,
    /// A descriptor that travels along.
    pub(crate) fd: Option<OwnedFd>,
}

/// An answer to a [`Call`].
#[derive(Debug)]
pub(crate) struct Reply<'a> {
    /// False if the service rejected the call or does not have the method.
    pub(crate) success: bool,
    /// Further replies to the same call follow.
    pub(crate) has_more: bool,
    /// The encoded response.
    pub(crate) body: &'a [u8],
    /// The newest memory that came along; whoever expects it takes it.
    pub(crate) memory: &'a mut Option<SharedMemory>,
}

/// How the service hands over a shared memory buffer.
#[derive(Debug)]
pub(crate) enum SharedMemory {
    /// As a file descriptor, to be mapped.
    Fd {
        fd: ForeignFd,
        /// It comes from root or from the user of this process, who may take the memory away again.
        is_trusted: bool,
    },
    /// As it is: the service lives in this process.
    #[cfg_attr(not(feature = "in-process"), expect(dead_code, reason = "only made by the service in this process"))]
    Region(Arc<dyn Memory>),
}

/// Something that arrived on a link.
#[derive(Debug)]
pub(crate) enum TransportEvent<'a, T> {
    /// Calls can be made from now on.
    Ready,
    /// A reply; the tag is that of its call.
    Reply(&'a mut T, Reply<'a>),
}
