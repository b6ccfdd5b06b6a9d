//! Driving a channel on tokio.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;

use esatto_ipc::tokio::TokioIo;

use super::Channel;
use crate::protocol::Protocol;

impl<P: Protocol> Channel<P> {
    /// Drives the channel as a task of tokio, which ends when the connection ends, or when the
    /// channel and all its clones are dropped. Must be called on a runtime of tokio.
    ///
    /// # Errors
    ///
    /// The runtime cannot wait for the socket.
    pub fn spawn_driver(&self) -> io::Result<()> {
        let mut io = TokioIo::duplicate(self)?;
        let shared = Arc::downgrade(&self.shared);
        tokio::spawn(poll_fn(move |cx| match shared.upgrade() {
            Some(shared) => shared.poll_drive(cx, &mut io).map(drop),
            None => Poll::Ready(()),
        }));
        Ok(())
    }
}
