//! Calls to the service and their replies, independent of the transport.

use std::sync::Arc;

use esatto_ports::{Rpc, consumer_port, producer_port};
use esatto_protozero::service::method_of;
use esatto_shm::Memory;

use crate::os::{ForeignFd, OwnedFd};

/// The names of the ports. As constants they bring no list of methods into the program.
pub(crate) const PRODUCER_PORT: &str = producer_port::SERVICE.name;
pub(crate) const CONSUMER_PORT: &str = consumer_port::SERVICE.name;

/// Returns the name of a method. Other services may number their methods differently.
pub(crate) const fn name_of<M: Rpc>() -> &'static str {
    method_of::<M>().name
}

/// A method to invoke. `tag` comes back with the replies.
#[derive(Debug)]
pub(crate) struct Call<T> {
    pub(crate) method: &'static str,
    pub(crate) args: Vec<u8>,
    /// Comes back with the replies. `None` asks the service not to reply.
    pub(crate) tag: Option<T>,
    /// A descriptor that is sent with the call.
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
    /// The newest memory that was received. The code that expects it takes it.
    pub(crate) memory: &'a mut Option<SharedMemory>,
}

/// A shared memory buffer, as the service passes it.
#[derive(Debug)]
pub(crate) enum SharedMemory {
    /// A file descriptor to map.
    Fd {
        fd: ForeignFd,
        /// It comes from root or from the user of this process. These may take the memory away
        /// again.
        is_trusted: bool,
    },
    /// The memory itself, of a service in this process.
    #[cfg_attr(not(feature = "in-process"), expect(dead_code, reason = "only made by the service in this process"))]
    Region(Arc<dyn Memory>),
}

/// An event of a connection.
#[derive(Debug)]
pub(crate) enum TransportEvent<'a, T> {
    /// Calls can be made from now on.
    Ready,
    /// A reply; the tag is that of its call.
    Reply(&'a mut T, Reply<'a>),
}
