//! Threads that close descriptors of services. Closing one can take as long as the service likes
//! (see `esatto_ipc::ForeignFd`), and the control thread must not wait for it.
//!
//! Descriptors wait in *lanes*, one for each address of a service. A lane closes one descriptor at
//! a time, so a service delays only its own. A thread exists only while there is something to
//! close. An ordinary service never needs one: its memory is a file in memory, and at the end of
//! its connection no descriptor waits in the socket.
//!
//! A `close` that blocks cannot be interrupted, because signals belong to the program. The lane
//! then stops. When [`MAX_WAITING_DESCRIPTORS`] wait in it, the program does not connect to that
//! service until some of them are closed.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use esatto_ipc::{Address, Admission, Disposal, Error, Family, Stream};
use rustix::io::ioctl_fionread;

use crate::diagnostics;
use crate::os::fork::{Generation, StaticMutex};
use crate::os::{signals, spawn};

const THREAD_NAME: &str = "esatto-close";

/// Lanes in which a descriptor is being closed at the same time. Each has a thread. Descriptors in
/// other lanes wait for a free thread.
const MAX_CLOSING_THREADS: usize = 4;

/// Descriptors of one service that are not closed yet. If there are this many, the service may pass
/// no more, and the program does not connect to it. Descriptors of existing connections are
/// additional.
const MAX_WAITING_DESCRIPTORS: usize = 16;

/// Closes the descriptors of one service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Closer {
    /// `None`: the services of sockets that the program delivers.
    address: Option<Address>,
}

#[derive(Debug)]
struct Lane {
    closer: Closer,
    waiting: Vec<OwnedFd>,
    is_closing: bool,
}

#[derive(Debug)]
struct Lanes {
    lanes: Vec<Lane>,
    threads: usize,
    /// The process that has the threads.
    process: Option<Generation>,
}

static LANES: StaticMutex<Lanes> = StaticMutex::new(Lanes { lanes: Vec::new(), threads: 0, process: None });

/// Descriptors in all lanes. While there are few, no thread takes the lock. Relaxed: a late look
/// only admits one more.
static OPEN: AtomicUsize = AtomicUsize::new(0);

impl Lane {
    /// Returns the number of open descriptors.
    fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.is_closing)
    }
}

impl Lanes {
    /// Counts a new thread, if one is needed and allowed.
    fn hire(&mut self) -> bool {
        let process = Some(Generation::current());
        if self.process != process {
            // The threads are the parent's. Descriptors that waited for them wait for threads of
            // this process.
            self.process = process;
            self.threads = 0;
            for lane in &mut self.lanes {
                OPEN.fetch_sub(usize::from(lane.is_closing), Ordering::Relaxed);
                lane.is_closing = false;
            }
        }
        let has_work = self.lanes.iter().any(|lane| !lane.is_closing && !lane.waiting.is_empty());
        let is_hired = has_work && self.threads < MAX_CLOSING_THREADS;
        self.threads += usize::from(is_hired);
        is_hired
    }

    /// Returns the next descriptor to close, and its lane.
    fn begin(&mut self) -> Option<(Closer, OwnedFd)> {
        let is_ready = |lane: &&mut Lane| !lane.is_closing && !lane.waiting.is_empty();
        let lane = self.lanes.iter_mut().find(is_ready)?;
        lane.is_closing = true;
        Some((lane.closer.clone(), lane.waiting.remove(0)))
    }

    fn finish(&mut self, closer: &Closer) {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.closer == *closer) {
            lane.is_closing = false;
            OPEN.fetch_sub(1, Ordering::Relaxed);
        }
        self.lanes.retain(|lane| lane.len() > 0);
    }
}

/// The body of a thread.
fn work() {
    signals::block();
    let mut lanes = LANES.lock();
    while let Some((closer, fd)) = lanes.begin() {
        drop(lanes);
        drop(fd);
        lanes = LANES.lock();
        lanes.finish(&closer);
    }
    lanes.threads -= 1;
}

impl Closer {
    /// Makes a closer for services at an address, or for sockets that the program delivers.
    pub(crate) const fn new(address: Option<Address>) -> Self {
        Self { address }
    }

    /// From now on, closes the connection and the descriptors that arrive over it.
    pub(crate) fn adopt(self, mut stream: Stream) -> Stream {
        // Other sockets carry no descriptors, and do not linger.
        if stream.family() == Family::Unix {
            stream.set_disposal(Arc::new(self));
        }
        stream
    }

    /// Fails while too many descriptors of this service are open.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if OPEN.load(Ordering::Relaxed) > 0 {
            staff();
        }
        if !self.is_full() {
            return Ok(());
        }
        let service = match &self.address {
            Some(address) => address.to_string(),
            None => "a socket that the program delivered".to_owned(),
        };
        let why = format!("{MAX_WAITING_DESCRIPTORS} descriptors that the service passed cannot be closed");
        diagnostics::say_once(format!("not connected to the tracing service at {service}: {why}"));
        Err(Error::Io(io::Error::other(why)))
    }

    fn is_full(&self) -> bool {
        if OPEN.load(Ordering::Relaxed) < MAX_WAITING_DESCRIPTORS {
            return false;
        }
        LANES.lock().lanes.iter().any(|lane| lane.closer == *self && lane.len() >= MAX_WAITING_DESCRIPTORS)
    }

    /// Closes a descriptor on another thread.
    fn close(&self, fd: OwnedFd) {
        OPEN.fetch_add(1, Ordering::Relaxed);
        {
            let mut lanes = LANES.lock();
            match lanes.lanes.iter_mut().find(|lane| lane.closer == *self) {
                Some(lane) => lane.waiting.push(fd),
                None => lanes.lanes.push(Lane { closer: self.clone(), waiting: vec![fd], is_closing: false }),
            }
        }
        staff();
    }
}

/// Starts a thread if there is something to close and no thread for it. If that fails, the
/// descriptor stays open until the next call.
fn staff() {
    let is_hired = LANES.lock().hire();
    if is_hired && spawn(THREAD_NAME, Box::new(work)).is_err() {
        LANES.lock().threads -= 1;
    }
}

impl Disposal for Closer {
    fn close_passed(&self, fd: OwnedFd) {
        self.close(fd);
    }

    fn close_connection(&self, fd: OwnedFd) {
        // The socket is shut down: nothing arrives any more. A descriptor in the queue has at least
        // one byte.
        match ioctl_fionread(&fd) {
            Ok(0) => drop(fd),
            _ => self.close(fd),
        }
    }

    fn admission(&self) -> Admission {
        if self.is_full() { Admission::Denied } else { Admission::Granted }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd as _;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// A socket whose `close` blocks until the other end goes away.
    fn lingering() -> (OwnedFd, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        rustix::net::sockopt::set_socket_linger(&socket, Some(Duration::from_secs(3600))).unwrap();
        socket.set_nonblocking(true).unwrap();
        while socket.write(&[0; 65536]).map_err(|e| assert_eq!(e.kind(), ErrorKind::WouldBlock)).is_ok() {}
        (socket.into(), listener.accept().unwrap().0)
    }

    fn open() -> usize {
        OPEN.load(Ordering::Relaxed)
    }

    #[test]
    fn a_connection_is_closed_elsewhere_if_a_descriptor_waits_in_it() {
        let closer = || Closer::new(Some("@/closers/test".parse().unwrap()));
        let (service, program) = Stream::pair().unwrap();
        let program = closer().adopt(program);
        service.send(b"x", None).unwrap();
        program.recv(&mut [0; 8]).unwrap().expect("it was sent");
        drop(program);
        assert_eq!(open(), 0, "an ordinary connection is closed at once");

        let mut other_ends = Vec::new();
        for _ in 0..MAX_WAITING_DESCRIPTORS {
            closer().check().expect("there are fewer");
            let (service, program) = Stream::pair().unwrap();
            let program = closer().adopt(program);
            let (fd, other_end) = lingering();
            service.send(b"x", Some(fd.as_fd())).unwrap();
            drop(fd);
            drop(program);
            other_ends.push(other_end);
        }
        assert_eq!(open(), MAX_WAITING_DESCRIPTORS);
        assert_eq!(
            closer().check().unwrap_err().to_string(),
            "socket error: 16 descriptors that the service passed cannot be closed"
        );
        assert_eq!(closer().admission(), Admission::Denied);
        Closer::new(None).check().expect("another service is not concerned");
        drop(other_ends);
        while open() > 0 {
            thread::yield_now();
        }
        closer().check().expect("they are closed");
    }
}
