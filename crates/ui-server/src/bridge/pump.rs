//! Bytes in both directions, in one thread: what one side does not take is not read from the other.

use core::time::Duration;
use std::io::{self, ErrorKind, Write as _};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Bytes, Error, Message, WebSocket};

/// Bytes of a message of the page. Requests to a service have at most 128 KiB each.
const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// Bytes that are read from the service at a time, for one message to the page.
const READ_BYTES: usize = 64 << 10;
/// Time for which the service may take no byte.
const SEND_TIME: Duration = Duration::from_secs(3);
/// Time for the page to take what is left after the end of the service.
const CLOSE_TIME: Duration = Duration::from_secs(10);

/// Connects a WebSocket, whose handshake is done, with the other side, until one of them ends.
pub(super) fn run(page: TcpStream, read: Vec<u8>, service: OwnedFd) {
    // An error ends the connection, and there is nobody to tell it to.
    let _ = Pump::new(page, read, service).and_then(|mut pump| pump.run());
}

struct Pump {
    page: WebSocket<TcpStream>,
    service: OwnedFd,
    /// Bytes for the service, and how many of them it has taken.
    to_service: Bytes,
    /// Since when the service has taken none of them.
    stuck_since: Instant,
    /// The page has not taken all.
    is_page_behind: bool,
    /// When the rest for the page is given up. The service has ended.
    closes_at: Option<Instant>,
}

impl Pump {
    fn new(page: TcpStream, read: Vec<u8>, service: OwnedFd) -> io::Result<Self> {
        page.set_nonblocking(true)?;
        rustix::io::ioctl_fionbio(&service, true)?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES))
            .write_buffer_size(0)
            .max_write_buffer_size(4 * READ_BYTES);
        Ok(Self {
            page: WebSocket::from_partially_read(page, read, Role::Server, Some(config)),
            service,
            to_service: Bytes::new(),
            stuck_since: Instant::now(),
            is_page_behind: false,
            closes_at: None,
        })
    }

    fn run(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            self.read_page()?;
            if !self.is_page_behind && self.closes_at.is_none() {
                self.read_service(&mut buffer)?;
            }
            self.flush_page()?;
            if self.closes_at.is_some_and(|at| !self.is_page_behind || Instant::now() >= at) {
                return Ok(());
            }
            if !self.to_service.is_empty() && self.stuck_since.elapsed() >= SEND_TIME {
                return Err(ErrorKind::TimedOut.into());
            }
            self.wait()?;
        }
    }

    /// Waits until one side can go on.
    fn wait(&self) -> io::Result<()> {
        let flag = |is_wanted, flag| if is_wanted { flag } else { PollFlags::empty() };
        let has_bytes = !self.to_service.is_empty();
        let page = flag(!has_bytes, PollFlags::IN) | flag(self.is_page_behind, PollFlags::OUT);
        let reads = !self.is_page_behind && self.closes_at.is_none();
        let service = flag(reads, PollFlags::IN) | flag(has_bytes, PollFlags::OUT);
        let timeout = if has_bytes {
            Some(SEND_TIME.saturating_sub(self.stuck_since.elapsed()))
        } else {
            self.closes_at.map(|at| at.saturating_duration_since(Instant::now()))
        };
        let timeout = timeout.map(|time| Timespec::try_from(time).expect("it is short"));
        let mut fds = [PollFd::new(self.page.get_ref(), page), PollFd::new(&self.service, service)];
        // A side that is gone wakes the poll, also if nothing is wanted of it.
        match poll(&mut fds[..if service.is_empty() { 1 } else { 2 }], timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes messages of the page, as long as the service takes their bytes.
    fn read_page(&mut self) -> io::Result<()> {
        loop {
            while !self.to_service.is_empty() {
                match rustix::io::write(&self.service, &self.to_service) {
                    Ok(taken) => {
                        self.to_service = self.to_service.slice(taken..);
                        self.stuck_since = Instant::now();
                    }
                    Err(Errno::AGAIN) => return Ok(()),
                    Err(Errno::INTR) => {}
                    // The service has ended: what it has sent is still for the page.
                    Err(_) => {
                        self.to_service = Bytes::new();
                        self.end_of_service()?;
                    }
                }
            }
            match self.page.read() {
                // Their bounds mean nothing: the bytes are a stream.
                Ok(Message::Binary(bytes)) => self.take(bytes)?,
                Ok(Message::Text(text)) => self.take(text.into())?,
                // Pongs and the answer to a close are queued by the library.
                Ok(_) => self.is_page_behind = true,
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(io_error(error)),
            }
        }
    }

    fn take(&mut self, bytes: Bytes) -> io::Result<()> {
        if self.closes_at.is_none() {
            self.to_service = bytes;
            self.stuck_since = Instant::now();
        }
        Ok(())
    }

    /// Moves bytes of the service to the page, until the page is behind.
    fn read_service(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        while !self.is_page_behind {
            match rustix::io::read(&self.service, &mut *buffer) {
                Ok(0) => return self.end_of_service(),
                Ok(read) => self.send(Message::Binary(Bytes::copy_from_slice(&buffer[..read])))?,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(_) => return self.end_of_service(),
            }
        }
        Ok(())
    }

    fn end_of_service(&mut self) -> io::Result<()> {
        if self.closes_at.is_none() {
            self.closes_at = Some(Instant::now() + CLOSE_TIME);
            self.is_page_behind = true;
            match self.page.close(None) {
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {}
                other => other.map_err(io_error)?,
            }
        }
        Ok(())
    }

    fn send(&mut self, message: Message) -> io::Result<()> {
        match self.page.write(message) {
            Ok(()) => self.flush_page(),
            // The message is in the buffer.
            Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                self.is_page_behind = true;
                Ok(())
            }
            Err(error) => Err(io_error(error)),
        }
    }

    fn flush_page(&mut self) -> io::Result<()> {
        match self.page.flush() {
            Ok(()) => {
                self.is_page_behind = false;
                self.page.get_mut().flush()
            }
            Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                self.is_page_behind = true;
                Ok(())
            }
            Err(error) => Err(io_error(error)),
        }
    }
}

fn io_error(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        error => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::net::{Shutdown, TcpListener};
    use std::os::unix::net::UnixStream;
    use std::thread;

    /// A page and a service, with the bridge between them.
    fn ends() -> (WebSocket<TcpStream>, UnixStream, thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let page = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (bridge, _) = listener.accept().unwrap();
        let (service, other) = UnixStream::pair().unwrap();
        let thread = thread::spawn(move || run(bridge, Vec::new(), other.into()));
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        (WebSocket::from_raw_socket(page, Role::Client, Some(config)), service, thread)
    }

    #[test]
    fn bytes_go_both_ways_and_bounds_of_messages_mean_nothing() {
        let (mut page, mut service, thread) = ends();
        page.send(Message::binary(&b"ab"[..])).unwrap();
        page.send(Message::text("cd")).unwrap();
        page.send(Message::Ping(Bytes::from_static(b"x"))).unwrap();
        let mut bytes = [0; 4];
        service.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"abcd");
        assert_eq!(page.read().unwrap(), Message::Pong(Bytes::from_static(b"x")));
        service.write_all(b"reply").unwrap();
        assert_eq!(page.read().unwrap(), Message::binary(&b"reply"[..]));
        page.close(None).unwrap();
        assert!(matches!(page.read().unwrap(), Message::Close(_)));
        assert_eq!(service.read(&mut bytes).unwrap(), 0, "the end of the page is that of the service");
        thread.join().unwrap();
    }

    #[test]
    fn much_arrives_whole_although_nobody_hurries() {
        let (mut page, mut service, thread) = ends();
        let bytes: Vec<u8> = (0..4_000_000_u32).map(|i| (i % 251) as u8).collect();
        let sent = bytes.clone();
        let writer = thread::spawn(move || {
            service.write_all(&sent).unwrap();
            service.shutdown(Shutdown::Write).unwrap();
            service
        });
        let mut came = Vec::new();
        loop {
            match page.read() {
                Ok(Message::Binary(part)) => came.extend_from_slice(&part),
                Ok(_) => {}
                Err(Error::ConnectionClosed) => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(came == bytes, "{} of {} bytes", came.len(), bytes.len());
        drop(writer.join().unwrap());
        thread.join().unwrap();
    }

    #[test]
    fn much_arrives_whole_at_the_service() {
        let (mut page, mut service, thread) = ends();
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 253) as u8).collect();
        let sent = bytes.clone();
        let writer = thread::spawn(move || {
            for part in sent.chunks(100_000) {
                page.send(Message::binary(part.to_vec())).unwrap();
            }
            page
        });
        let mut came = vec![0; bytes.len()];
        service.read_exact(&mut came).unwrap();
        assert!(came == bytes);
        drop(service);
        let mut page = writer.join().unwrap();
        assert!(matches!(page.read(), Ok(Message::Close(_)) | Err(_)));
        drop(page);
        thread.join().unwrap();
    }

    #[test]
    fn a_message_that_is_too_long_ends_the_connection() {
        let (mut page, mut service, thread) = ends();
        let _ = page.send(Message::binary(vec![0; MAX_MESSAGE_BYTES + 1]));
        thread.join().unwrap();
        assert_eq!(service.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn bytes_that_are_no_frames_end_the_connection() {
        let (page, mut service, thread) = ends();
        // Not masked, as a page must.
        (&mut page.get_ref()).write_all(b"\x82\x01x").unwrap();
        thread.join().unwrap();
        assert_eq!(service.read(&mut [0]).unwrap(), 0);
    }
}
