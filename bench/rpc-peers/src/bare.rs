//! The floor: the same bytes over a socket, with a length before them, and nothing else.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::rc::Rc;
use std::thread;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Mutex;

use crate::contender::{Async, Blocking, Contender, Tasks, Threads, serve_on_runtime};

/// Bytes before a payload: its length, and in the highest bit, if it is one-way.
const HEADER: usize = 4;
const ONE_WAY: u32 = 1 << 31;

/// Received bytes, and where the next message begins.
struct Received {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Received {
    fn new() -> Self {
        Self { bytes: vec![0; 256 * 1024], start: 0, end: 0 }
    }

    /// Returns the next message with its header, if it is complete.
    fn next(&mut self) -> Option<(&[u8], bool)> {
        let received = &self.bytes[self.start..self.end];
        let header = u32::from_le_bytes(*received.first_chunk::<HEADER>()?);
        let message = received.get(..HEADER + (header & !ONE_WAY) as usize)?;
        self.start += message.len();
        Some((message, header & ONE_WAY != 0))
    }

    fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.bytes.len() - self.end < 128 * 1024 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.bytes[self.end..]
    }
}

fn message(payload: &[u8], is_one_way: bool) -> Vec<u8> {
    let header = payload.len() as u32 | if is_one_way { ONE_WAY } else { 0 };
    [&header.to_le_bytes(), payload].concat()
}

pub(crate) fn serve(socket: &Path) {
    for stream in UnixListener::bind(socket).expect("a socket").incoming() {
        let mut stream = stream.expect("a connection");
        thread::spawn(move || {
            let mut received = Received::new();
            loop {
                match stream.read(received.room()) {
                    Ok(0) | Err(_) => return,
                    Ok(len) => received.end += len,
                }
                while let Some((message, is_one_way)) = received.next() {
                    if !is_one_way && stream.write_all(message).is_err() {
                        return;
                    }
                }
            }
        });
    }
}

pub(crate) fn serve_tokio(socket: &Path) {
    serve_on_runtime(async {
        let listener = tokio::net::UnixListener::bind(socket).expect("a socket");
        loop {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            tokio::task::spawn_local(async move {
                let mut received = Received::new();
                loop {
                    match stream.read(received.room()).await {
                        Ok(0) | Err(_) => return,
                        Ok(len) => received.end += len,
                    }
                    while let Some((message, is_one_way)) = received.next() {
                        if !is_one_way && stream.write_all(message).await.is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
}

pub(crate) fn connect(socket: &Path, connections: usize) -> Box<dyn Contender> {
    let connect = |_| (UnixStream::connect(socket).expect("the server listens"), Received::new());
    Box::new(Threads((0..connections).map(connect).collect()))
}

impl Blocking for (UnixStream, Received) {
    fn round_trips(&mut self, calls: usize, payload: &[u8]) {
        let message = message(payload, false);
        for _ in 0..calls {
            self.0.write_all(&message).expect("the server reads");
            while self.1.next().is_none() {
                self.1.end += self.0.read(self.1.room()).expect("the server answers");
            }
        }
    }

    fn one_way(&mut self, calls: usize, payload: &[u8]) {
        let message = message(payload, true);
        for _ in 0..calls {
            self.0.write_all(&message).expect("the server reads");
        }
        self.round_trips(1, payload);
    }
}

pub(crate) fn connect_tokio(socket: &Path, connections: usize) -> Box<dyn Contender> {
    Tasks::boxed(connections, || async {
        let stream = tokio::net::UnixStream::connect(socket).await.expect("the server listens");
        Tokio(Rc::new(Mutex::new((stream, Received::new()))))
    })
}

#[derive(Clone)]
struct Tokio(Rc<Mutex<(tokio::net::UnixStream, Received)>>);

impl Async for Tokio {
    async fn round_trips(self, calls: usize, payload: Vec<u8>) {
        let message = message(&payload, false);
        let (stream, received) = &mut *self.0.lock().await;
        for _ in 0..calls {
            stream.write_all(&message).await.expect("the server reads");
            while received.next().is_none() {
                received.end += stream.read(received.room()).await.expect("the server answers");
            }
        }
    }

    async fn one_way(self, calls: usize, payload: Vec<u8>) {
        {
            let message = message(&payload, true);
            let (stream, _) = &mut *self.0.lock().await;
            for _ in 0..calls {
                stream.write_all(&message).await.expect("the server reads");
            }
        }
        self.round_trips(1, payload).await;
    }
}
