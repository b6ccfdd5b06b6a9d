//! Driving channels and servers on tokio (feature `tokio`).

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::Sleep;

use crate::readiness::Readiness;

/// Waiting for a socket with tokio.
///
/// Tokio hears of room to write only while somebody waits for it. Else each message that the peer
/// reads would wake this side.
#[derive(Debug)]
pub struct TokioIo<F: AsRawFd> {
    /// `None` after a failure.
    fd: Option<AsyncFd<F>>,
    waits_for_room: bool,
    /// Room was asked for since the last question for something to read.
    was_asked_for_room: bool,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl<F: AsRawFd> TokioIo<F> {
    /// Makes one for a non-blocking socket. Must be called on a runtime of tokio.
    ///
    /// # Errors
    ///
    /// The runtime cannot wait for it.
    pub fn new(fd: F) -> io::Result<Self> {
        let fd = Some(register(fd, Interest::READABLE)?);
        Ok(Self { fd, waits_for_room: false, was_asked_for_room: false, sleep: None })
    }

    fn fd(&self) -> io::Result<&AsyncFd<F>> {
        self.fd.as_ref().ok_or_else(|| io::Error::other("the socket could not be registered again"))
    }

    /// Begins or stops to wait for room to write too. Forgets the socket's readiness, and who waits
    /// for it; tokio tells the present state again.
    fn wait_for_room(&mut self, begin: bool) -> io::Result<()> {
        if let Some(fd) = self.fd.take() {
            let interest = if begin { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
            self.fd = Some(register(fd.into_inner(), interest)?);
            self.waits_for_room = begin;
        }
        Ok(())
    }
}

fn register<F: AsRawFd>(fd: F, interest: Interest) -> io::Result<AsyncFd<F>> {
    // Its replacement is `unsafe`, because `AsRawFd` promises nothing. The types that are used here
    // own their descriptor.
    #[allow(deprecated, reason = "see above")]
    AsyncFd::with_interest(fd, interest)
}

impl TokioIo<OwnedFd> {
    /// Makes one for a duplicate of a non-blocking socket. Must be called on a runtime of tokio.
    ///
    /// # Errors
    ///
    /// The runtime cannot wait for it, or the process has no descriptors left.
    pub fn duplicate(fd: impl AsFd) -> io::Result<Self> {
        Self::new(fd.as_fd().try_clone_to_owned()?)
    }
}

impl<F: AsRawFd + Unpin> Readiness for TokioIo<F> {
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.waits_for_room && !std::mem::take(&mut self.was_asked_for_room) {
            self.wait_for_room(false)?;
        }
        self.fd()?.poll_read_ready(cx).map_ok(|mut guard| guard.clear_ready())
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.was_asked_for_room = true;
        if !self.waits_for_room {
            self.wait_for_room(true)?;
            // Forgotten too, and perhaps not asked again before this task waits.
            if self.fd()?.poll_read_ready(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        self.fd()?.poll_write_ready(cx).map_ok(|mut guard| guard.clear_ready())
    }

    fn poll_sleep_until(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let deadline = deadline.into();
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if sleep.deadline() != deadline {
            sleep.as_mut().reset(deadline);
        }
        sleep.as_mut().poll(cx)
    }
}

#[cfg(feature = "channel")]
mod channel {
    use std::io;

    use super::TokioIo;
    use crate::channel::Channel;

    impl Channel {
        /// Drives the channel as a task of tokio, which ends when the connection ends, or when the
        /// channel and all its clients are dropped. Must be called on a runtime of tokio.
        ///
        /// # Errors
        ///
        /// The runtime cannot wait for the socket.
        pub fn spawn_driver(&self) -> io::Result<()> {
            let io = TokioIo::duplicate(self)?;
            let driver = self.driver();
            tokio::spawn(async move {
                driver.run(io).await;
            });
            Ok(())
        }
    }
}

#[cfg(feature = "server")]
mod server {
    use std::future::poll_fn;
    use std::task::Poll;

    use tokio::task::JoinSet;
    use tokio::time::{sleep, timeout};

    use super::TokioIo;
    use crate::error::Error;
    use crate::readiness::Readiness;
    use crate::server::{Dispatch, PAUSE, Server};
    use crate::sys::Listener;

    impl<D: Dispatch + Clone + Send + 'static> Server<D> {
        /// Accepts connections and serves each as a task of tokio, until [`stop`](Self::stop).
        /// Dropping the future ends them all. Must be called on a runtime of tokio with a timer.
        ///
        /// If the process lacks descriptors or memory, clients wait or are disconnected. The server
        /// goes on.
        ///
        /// # Errors
        ///
        /// The reason why no more connections can be accepted.
        pub async fn serve(&self, listener: &Listener) -> Result<(), Error> {
            let mut io = TokioIo::duplicate(listener)?;
            let mut tasks = JoinSet::new();
            let running = self.running();
            while !running.is_stopped() {
                while tasks.try_join_next().is_some() {}
                if tasks.len() >= self.most_connections() {
                    running.evict(listener);
                    let _ = timeout(PAUSE, tasks.join_next()).await;
                    continue;
                }
                let stream = match listener.accept() {
                    Ok(Some(stream)) => stream,
                    Ok(None) => {
                        poll_fn(|cx| {
                            running.watch(cx.waker());
                            if running.is_stopped() { Poll::Ready(Ok(())) } else { io.poll_readable(cx) }
                        })
                        .await?;
                        continue;
                    }
                    Err(error) if error.is_shortage() => {
                        running.failed();
                        sleep(PAUSE).await;
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                let mut connection = self.connection(stream);
                let Ok(io) = TokioIo::new(connection.socket()) else {
                    running.failed();
                    continue;
                };
                let Some(mut place) = running.add(connection.socket()) else { break };
                tasks.spawn(async move {
                    place.ended(&*connection.drive(io).await);
                    drop(connection);
                });
            }
            while tasks.join_next().await.is_some() {}
            Ok(())
        }
    }
}
