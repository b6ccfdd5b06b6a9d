//! Peers that speak the socket protocol by hand, with an encoder and decoder of a few lines that
//! share nothing with ours. They ask a service for its state, and send it nonsense
//! (`docs/spec/wire-protocol.md` §2–§4).

use crate::Harness;
use crate::program::DEADLINE;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use std::io::{IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The largest payload of a frame (§2).
pub const MAX_PAYLOAD: u32 = 131_068;

/// Protobuf fields, written one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proto(pub Vec<u8>);

impl Proto {
    /// No fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Fields as [`fields`] found them.
    #[must_use]
    pub fn of<'a>(fields: impl Iterator<Item = (u32, Value<'a>)>) -> Self {
        fields.fold(Self::new(), |message, (field, value)| match value {
            Value::Int(value) => message.int(field, value),
            Value::Bytes(bytes) => message.bytes(field, bytes),
        })
    }

    /// Adds a varint field.
    #[must_use]
    pub fn int(mut self, field: u32, value: u64) -> Self {
        self.varint(u64::from(field) << 3);
        self.varint(value);
        self
    }

    /// Adds a length-delimited field.
    #[must_use]
    pub fn bytes(mut self, field: u32, value: impl AsRef<[u8]>) -> Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.as_ref().len() as u64);
        self.0.extend_from_slice(value.as_ref());
        self
    }

    /// Adds a length-delimited field with a length of four bytes, even if fewer suffice.
    #[must_use]
    pub fn wide(mut self, field: u32, value: &[u8]) -> Self {
        self.varint(u64::from(field) << 3 | 2);
        let length = u32::try_from(value.len()).expect("a short field");
        self.0.extend((0..4).map(|i| (length >> (7 * i)).to_le_bytes()[0] & 0x7f | if i < 3 { 0x80 } else { 0 }));
        self.0.extend_from_slice(value);
        self
    }

    /// Adds bytes behind their length, without a field number.
    #[must_use]
    pub fn sized(mut self, value: &[u8]) -> Self {
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// Adds a message field.
    #[must_use]
    pub fn message(self, field: u32, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    /// The fields behind their length, as they go over the socket.
    #[must_use]
    pub fn frame(&self) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).expect("a frame is small");
        [&length.to_le_bytes(), self.0.as_slice()].concat()
    }

    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}

/// A decoded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A varint or fixed-width number.
    Int(u64),
    /// A string, bytes or message.
    Bytes(&'a [u8]),
}

/// Splits a message into its fields.
///
/// # Panics
///
/// The message is malformed; messages of a service must not be.
#[must_use]
pub fn fields(mut bytes: &[u8]) -> Vec<(u32, Value<'_>)> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let tag = take_varint(&mut bytes);
        let value = match tag & 7 {
            0 => Value::Int(take_varint(&mut bytes)),
            1 => Value::Int(u64::from_le_bytes(take(&mut bytes, 8).try_into().expect("8 bytes"))),
            2 => {
                let length = usize::try_from(take_varint(&mut bytes)).expect("a length");
                Value::Bytes(take(&mut bytes, length))
            }
            5 => Value::Int(u64::from(u32::from_le_bytes(take(&mut bytes, 4).try_into().expect("4 bytes")))),
            other => panic!("wire type {other}"),
        };
        out.push((u32::try_from(tag >> 3).expect("a field number"), value));
    }
    out
}

/// The last number in field `id`, 0 if absent.
#[must_use]
pub fn int(bytes: &[u8], id: u32) -> u64 {
    let values = fields(bytes).into_iter().filter(|(field, _)| *field == id);
    values
        .filter_map(|(_, value)| if let Value::Int(value) = value { Some(value) } else { None })
        .next_back()
        .unwrap_or(0)
}

/// All byte strings in field `id`.
#[must_use]
pub fn all(bytes: &[u8], id: u32) -> Vec<&[u8]> {
    let values = fields(bytes).into_iter().filter(|(field, _)| *field == id);
    values.filter_map(|(_, value)| if let Value::Bytes(value) = value { Some(value) } else { None }).collect()
}

/// The last byte string in field `id`.
#[must_use]
pub fn last(bytes: &[u8], id: u32) -> Option<&[u8]> {
    all(bytes, id).pop()
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (head, tail) = bytes.split_at(count);
    *bytes = tail;
    head
}

pub(crate) fn take_varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// Reply of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Which request it belongs to.
    pub request_id: u64,
    /// The method ran and was content.
    pub success: bool,
    /// More replies to this request will follow.
    pub has_more: bool,
    /// The answer.
    pub body: Vec<u8>,
    /// The text of a RequestError, of which the rest is empty then.
    pub error: Option<String>,
    /// The whole frame.
    pub frame: Vec<u8>,
}

/// State of a service, as it reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The names of the producers.
    pub producers: Vec<String>,
    /// The names of the data sources.
    pub data_sources: Vec<String>,
    /// Their encoded descriptors, in the same order.
    pub descriptors: Vec<Vec<u8>>,
    /// Sessions there are.
    pub sessions: usize,
    /// Sessions that are started.
    pub sessions_started: usize,
}

/// A connection to a service.
#[derive(Debug)]
pub struct Peer {
    stream: UnixStream,
    /// Read, but not handed out yet.
    received: Vec<u8>,
    /// Descriptors that came along.
    descriptors: Vec<OwnedFd>,
    request_id: u64,
    /// Names and ids of the methods of the bound service.
    methods: Vec<(String, u64)>,
    writes_wide: bool,
}

impl Peer {
    /// Connects to a socket and says nothing.
    ///
    /// # Panics
    ///
    /// No service listens.
    #[must_use]
    pub fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap_or_else(|error| panic!("{}: {error}", socket.display()));
        Self::over(stream)
    }

    /// A connection that stands already.
    ///
    /// # Panics
    ///
    /// Its time limits cannot be set.
    #[must_use]
    pub fn over(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        stream.set_write_timeout(Some(DEADLINE)).expect("a timeout");
        Self {
            stream,
            received: Vec::new(),
            descriptors: Vec::new(),
            request_id: 0,
            methods: Vec::new(),
            writes_wide: false,
        }
    }

    /// From now on, lengths in frames have four bytes, as all had before v38.
    pub fn write_wide(&mut self) {
        self.writes_wide = true;
    }

    /// Connects to a TCP port of this machine and says nothing.
    ///
    /// # Panics
    ///
    /// No service listens.
    #[must_use]
    pub fn connect_tcp(port: u16) -> Self {
        let stream =
            std::net::TcpStream::connect(("127.0.0.1", port)).unwrap_or_else(|error| panic!("{port}: {error}"));
        stream.set_nodelay(true).expect("an option");
        // Reading, writing and time limits are the same for every kind of stream socket.
        let stream = UnixStream::from(OwnedFd::from(stream));
        Self::over(stream)
    }

    /// Connects to the consumer socket and binds its service.
    #[must_use]
    pub fn consumer(harness: &Harness) -> Self {
        let mut peer = Self::connect(&harness.consumer_socket());
        peer.bind("ConsumerPort");
        peer
    }

    /// Connects to the producer socket and binds its service.
    #[must_use]
    pub fn producer(harness: &Harness) -> Self {
        let mut peer = Self::connect(&harness.producer_socket());
        peer.bind("ProducerPort");
        peer
    }

    /// Sends bytes as they are. The service may have closed: that is no error here.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Sends bytes with descriptors attached to the first of them.
    pub fn send_with_fds(&mut self, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); 1024];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(fds)), "the descriptors fit");
        let sent = rustix::net::sendmsg(self.stream.as_fd(), &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL);
        if let Ok(sent) = sent {
            self.send(&bytes[sent..]);
        }
    }

    /// Binds the service `name`.
    ///
    /// # Panics
    ///
    /// It is refused.
    pub fn bind(&mut self, name: &str) {
        self.request_id += 1;
        let bind = Proto::new().bytes(1, name);
        self.send(&Proto::new().int(2, self.request_id).message(3, &bind).frame());
        let frame = self.read_frame().expect("an answer to BindService");
        let reply = last(&frame, 4).expect("BindServiceReply");
        assert_eq!(int(reply, 1), 1, "{name} is bound");
        self.methods = all(reply, 3)
            .into_iter()
            .map(|method| (String::from_utf8_lossy(last(method, 2).unwrap_or_default()).into_owned(), int(method, 1)))
            .collect();
    }

    /// The frame of a call, for [`send`](Self::send), and its request id.
    ///
    /// # Panics
    ///
    /// The service has no such method.
    pub fn call_frame(&mut self, method: &str, args: &Proto) -> (u64, Vec<u8>) {
        let id = self.methods.iter().find(|(name, _)| name == method).unwrap_or_else(|| panic!("no {method}")).1;
        self.raw_call_frame(1, id, &args.0)
    }

    /// As [`call_frame`](Self::call_frame), of numbers that need not exist.
    pub fn raw_call_frame(&mut self, service: u64, method: u64, args: &[u8]) -> (u64, Vec<u8>) {
        self.request_id += 1;
        let invoke = Proto::new().int(1, service).int(2, method);
        let invoke = if self.writes_wide { invoke.wide(3, args) } else { invoke.bytes(3, args) }.int(4, 0);
        let frame = Proto::new().int(2, self.request_id);
        (self.request_id, if self.writes_wide { frame.wide(5, &invoke.0) } else { frame.message(5, &invoke) }.frame())
    }

    /// Calls a method and waits for its first reply.
    ///
    /// # Panics
    ///
    /// The service closes the connection instead.
    pub fn call(&mut self, method: &str, args: &Proto) -> Reply {
        let (id, frame) = self.call_frame(method, args);
        self.send(&frame);
        self.reply_to(id)
    }

    /// Reads until a reply to request `id`.
    ///
    /// # Panics
    ///
    /// The service closes the connection instead.
    pub fn reply_to(&mut self, id: u64) -> Reply {
        loop {
            let reply = self.read().unwrap_or_else(|| panic!("the service closed the connection at request {id}"));
            if reply.request_id == id {
                return reply;
            }
        }
    }

    /// Reads the next reply; none if the service has closed the connection.
    pub fn read(&mut self) -> Option<Reply> {
        let frame = self.read_frame()?;
        let request_id = int(&frame, 2);
        let error =
            last(&frame, 7).map(|error| String::from_utf8_lossy(last(error, 1).unwrap_or_default()).into_owned());
        let reply = last(&frame, 6).unwrap_or_default();
        let (success, has_more) = (int(reply, 1) != 0, int(reply, 2) != 0);
        let body = last(reply, 3).unwrap_or_default().to_vec();
        Some(Reply { request_id, success, has_more, body, error, frame })
    }

    /// True if the service closes the connection before it sends anything more.
    pub fn is_closed(&mut self) -> bool {
        self.read_frame().is_none()
    }

    /// Asks the service about its state.
    pub fn state(&mut self) -> State {
        let mut bytes = Vec::new();
        let mut reply = self.call("QueryServiceState", &Proto::new());
        loop {
            assert!(reply.success, "QueryServiceState is answered");
            bytes.extend_from_slice(last(&reply.body, 1).unwrap_or_default());
            if !reply.has_more {
                break;
            }
            reply = self.reply_to(reply.request_id);
        }
        let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
        let count = |id| usize::try_from(int(&bytes, id)).expect("a count");
        State {
            producers: all(&bytes, 1).into_iter().map(|producer| text(last(producer, 2))).collect(),
            data_sources: all(&bytes, 2)
                .into_iter()
                .map(|source| text(last(source, 1).and_then(|descriptor| last(descriptor, 1))))
                .collect(),
            descriptors: all(&bytes, 2)
                .into_iter()
                .map(|source| last(source, 1).unwrap_or_default().to_vec())
                .collect(),
            sessions: count(3),
            sessions_started: count(4),
        }
    }

    /// The descriptor that came with the last frames, if one did.
    pub fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptors.pop()
    }

    /// Sends one byte sequence after the other until the service stops taking them; whether it did
    /// so before `limit` bytes.
    pub fn flood(&mut self, bytes: &[u8], limit: usize) -> bool {
        self.stream.set_write_timeout(Some(Duration::from_secs(1))).expect("a timeout");
        (0..limit).step_by(bytes.len()).any(|_| self.stream.write_all(bytes).is_err())
    }

    /// The payload of the next frame; none at the end of the stream.
    ///
    /// # Panics
    ///
    /// The service sends nothing, or a frame that is too long.
    pub fn read_frame(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some((header, rest)) = self.received.split_first_chunk::<4>() {
                let length = u32::from_le_bytes(*header);
                assert!(length <= MAX_PAYLOAD, "the service sends a frame of {length} bytes");
                if rest.len() >= length as usize {
                    let payload = rest[..length as usize].to_vec();
                    self.received.drain(..4 + length as usize);
                    return Some(payload);
                }
            }
            self.receive()?;
        }
    }

    /// As [`read_frame`](Self::read_frame), but a service that says nothing for a while is none to
    /// wait for.
    pub fn read_frame_soon(&mut self) -> Option<Vec<u8>> {
        let mut poll = [rustix::event::PollFd::new(&self.stream, rustix::event::PollFlags::IN)];
        let timeout = rustix::time::Timespec { tv_sec: 5, tv_nsec: 0 };
        if self.received.is_empty() && rustix::event::poll(&mut poll, Some(&timeout)) == Ok(0) {
            return None;
        }
        self.read_frame()
    }

    fn receive(&mut self) -> Option<()> {
        let mut bytes = [0; 65536];
        let mut space = [MaybeUninit::uninit(); 256];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let message = rustix::net::recvmsg(
            self.stream.as_fd(),
            &mut [IoSliceMut::new(&mut bytes)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        );
        let count = match message {
            Ok(message) => message.bytes,
            Err(rustix::io::Errno::AGAIN) => panic!("no answer within {DEADLINE:?}"),
            Err(_) => return None,
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.descriptors.extend(descriptors);
            }
        }
        self.received.extend_from_slice(&bytes[..count]);
        (count > 0).then_some(())
    }
}
