//! A connection over a socket.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use esatto_ipc::{Client, ClientEvent, Connection, Limits, RequestId, Stream};
use esatto_map::Map;

use super::TransportEvent;
use super::rpc::{Call, Reply, SharedMemory};
use crate::connection::transport::SocketPlace;
use crate::os::Interest;
use crate::os::descriptor_closer::Closer;
use crate::os::fork::OwnedByParent;

/// The longest time that a TCP connection may take. Unix sockets connect at once.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// If this many bytes wait to be written, the peer or the network is too slow.
const CONGESTED: usize = 1 << 20;

/// A connection over a socket.
#[derive(Debug)]
pub(crate) struct SocketTransport<T> {
    /// Before the connection, so that it is dropped first.
    _not_inherited: OwnedByParent,
    connection: Connection,
    client: Client,
    pending: Map<RequestId, T>,
    /// The newest shared memory that arrived.
    memory: Option<SharedMemory>,
    /// The service runs as root or as the user of this process.
    is_trusted: bool,
}

impl<T> SocketTransport<T> {
    /// Connects and asks for a service.
    pub(crate) fn connect(socket: &SocketPlace, service: &str) -> Result<Self, esatto_ipc::Error> {
        let closer = Closer::new(Some(socket.address.clone()));
        closer.check()?;
        let stream = closer.adopt(Stream::connect(&socket.address, CONNECT_TIMEOUT)?);
        if !socket.is_named && socket.address.is_open_to_all() {
            stream.refuse_stranger(&socket.address)?;
        }
        Self::over(stream, service)
    }

    /// Fails while descriptors that arrived over such sockets do not close.
    pub(crate) fn may_adopt() -> Result<(), esatto_ipc::Error> {
        Closer::new(None).check()
    }

    /// Uses a socket that another process has connected.
    pub(crate) fn adopt(socket: OwnedFd, service: &str) -> Result<Self, esatto_ipc::Error> {
        Self::over(Closer::new(None).adopt(Stream::from_fd(socket)?), service)
    }

    /// Asks for a service over an established connection.
    fn over(stream: Stream, service: &str) -> Result<Self, esatto_ipc::Error> {
        let mut link = Self {
            _not_inherited: OwnedByParent::new(stream.as_fd()),
            is_trusted: stream.has_trusted_peer(),
            connection: Connection::new(stream, Limits::CLIENT),
            client: Client::new(),
            pending: Map::new(),
            memory: None,
        };
        link.client.bind(service, link.connection.out().buffer())?;
        link.connection.flush_writes()?;
        Ok(link)
    }

    /// Makes a call. Returns the tag if the service does not have the method: the call counts as
    /// rejected.
    pub(crate) fn invoke(&mut self, call: Call<T>) -> Result<Option<T>, esatto_ipc::Error> {
        let drop_reply = call.tag.is_none();
        let Self { connection, client, .. } = self;
        let request = match call.fd {
            None => client.invoke(call.method, &call.args, drop_reply, connection.out().buffer())?,
            Some(fd) => connection.out().with_fd(fd, |out| client.invoke(call.method, &call.args, drop_reply, out))?,
        };
        match (request, call.tag) {
            (Some(request), Some(tag)) => {
                self.pending.insert(request, tag);
                Ok(None)
            }
            (Some(_), None) => Ok(None),
            (None, tag) => Ok(tag),
        }
    }

    /// Writes the bytes that wait.
    pub(crate) fn flush(&mut self) -> Result<(), esatto_ipc::Error> {
        self.connection.flush_writes()
    }

    /// Returns whether more bytes wait than are sent at a time.
    pub(crate) fn is_congested(&self) -> bool {
        self.connection.queued() >= CONGESTED
    }

    /// Reads and handles the frames that have arrived. Returns false if the connection is over.
    pub(crate) fn pump(&mut self, mut handle: impl FnMut(TransportEvent<'_, T>)) -> Result<bool, esatto_ipc::Error> {
        self.connection.on_readable()?;
        while let Some((frame, io)) = self.connection.next_frame()? {
            if let Some(fd) = io.fd.take() {
                self.memory = Some(SharedMemory::Fd { fd, is_trusted: self.is_trusted });
            }
            match self.client.handle(&frame) {
                None => {}
                Some(ClientEvent::Bound) => handle(TransportEvent::Ready),
                Some(ClientEvent::BindFailed) => return Ok(false),
                Some(ClientEvent::Reply { request_id, success, has_more, body, .. }) => {
                    if let Some(mut tag) = self.pending.remove(&request_id) {
                        let reply = Reply { success, has_more, body, memory: &mut self.memory };
                        handle(TransportEvent::Reply(&mut tag, reply));
                        if has_more {
                            self.pending.insert(request_id, tag);
                        }
                    }
                }
                Some(ClientEvent::RequestError { request_id, .. }) => {
                    if let Some(mut tag) = self.pending.remove(&request_id) {
                        let reply = Reply { success: false, has_more: false, body: &[], memory: &mut None };
                        handle(TransportEvent::Reply(&mut tag, reply));
                    }
                }
                Some(_) => {}
            }
        }
        Ok(!self.connection.is_closed())
    }

    /// Returns what to wait for.
    pub(crate) fn interest(&self) -> Interest<'_> {
        Interest { fd: self.connection.stream().as_fd(), wants_write: self.connection.wants_write() }
    }
}
