//! Peers that break the rules: a client and a service that send frames which are nearly valid.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

use esatto_ipc::FrameDecoder;
use esatto_ipc::frame::rpc::{Features, InvokeMethod, RpcBody, WireStatus, encode};
use esatto_ipc::frame::{PeerIdentity, encode as plain};
use esatto_ipc::simulated::Link;
use esatto_protozero::Owned;

use super::descriptors;
use super::net::{End, Side};
use super::services::Packet;
use crate::rng::Rng;

/// A peer, with its end of the connection.
#[derive(Debug)]
pub(super) struct Hostile {
    end: End,
    side: Side,
    out: VecDeque<(Vec<u8>, Option<OwnedFd>)>,
    decoder: FrameDecoder,
    /// Requests that it has sent, or received.
    ids: Vec<(u64, Kind)>,
    is_reading: bool,
    /// It sends to one call as much as it can.
    is_flooding: bool,
    /// Extensions that it claims to know.
    features: Features,
    pub(super) is_over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bind,
    Call,
    /// A call of a stream that has a window.
    Stream,
}

impl Hostile {
    pub(super) fn new(connection: usize, side: Side, rng: &mut Rng) -> Self {
        Self {
            end: End::new(connection, side),
            side,
            out: VecDeque::new(),
            decoder: FrameDecoder::new(),
            ids: Vec::new(),
            is_reading: rng.percent(80),
            is_flooding: rng.percent(30),
            features: Features(rng.pick(&[31, 31, 31, 0, u32::MAX, 15, 23])),
            is_over: false,
        }
    }

    /// Returns true if it promises to keep windows.
    pub(super) fn knows_windows(&self) -> bool {
        self.features.has(Features::CREDIT)
    }

    /// Sends or reads something.
    pub(super) fn act(&mut self, rng: &mut Rng) {
        if rng.one_in(50) {
            self.is_reading = !self.is_reading;
        }
        if self.is_reading {
            self.read(rng);
        }
        if self.out.len() < 4 {
            let mut bytes = Vec::new();
            for _ in 0..rng.pick(&[1, 1, 1, 5, 30]) {
                if bytes.len() > 200_000 {
                    break;
                }
                match self.side {
                    Side::Client => self.request(&mut bytes, rng),
                    Side::Server => self.reply(&mut bytes, rng),
                }
            }
            if rng.one_in(400) {
                // Not a frame.
                bytes.extend((0..rng.between(1, 60)).map(|_| rng.bits() as u8));
            }
            let fd = if rng.one_in(15) { descriptors::make().map(|(_, fd)| fd) } else { None };
            if !bytes.is_empty() {
                self.out.push_back((bytes, fd));
            }
        }
        self.write();
    }

    fn write(&mut self) {
        while let Some((bytes, fd)) = self.out.front_mut() {
            match self.end.send(bytes, fd.as_ref().map(AsFd::as_fd)) {
                Ok(0) => break,
                Ok(sent) => {
                    bytes.drain(..sent);
                    *fd = None;
                    if bytes.is_empty() {
                        self.out.pop_front();
                    }
                }
                Err(_) => {
                    self.is_over = true;
                    break;
                }
            }
        }
    }

    fn read(&mut self, rng: &mut Rng) {
        let mut buffer = vec![0; rng.pick(&[1, 100, 5000])];
        let Some((len, fd)) = self.end.recv(&mut buffer) else { return };
        drop(fd);
        self.is_over |= len == 0;
        let mut bytes = &buffer[..len];
        while !bytes.is_empty() {
            let taken = self.decoder.push(bytes);
            bytes = &bytes[taken..];
            while let Some((frame, _)) = self.decoder.next_rpc_frame().expect("the library's frames are small enough") {
                if self.side == Side::Server {
                    match frame.body {
                        RpcBody::BindService { .. } => self.ids.push((frame.request_id, Kind::Bind)),
                        RpcBody::InvokeMethod(call) => {
                            let kind = if call.window.is_some() { Kind::Stream } else { Kind::Call };
                            self.ids.push((frame.request_id, kind));
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    fn any_id(&self, rng: &mut Rng) -> u64 {
        if self.ids.is_empty() || rng.one_in(10) {
            return rng.pick(&[0, 1, 2, 3, 7, u64::MAX, 1 << 32]);
        }
        let recent = self.ids.len().min(6);
        self.ids[self.ids.len() - 1 - rng.index(recent)].0
    }

    /// Appends a frame of a client.
    fn request(&mut self, out: &mut Vec<u8>, rng: &mut Rng) {
        let next = self.ids.len() as u64 + 1;
        let long = "n".repeat(100_000);
        if self.ids.is_empty() && rng.percent(95) {
            encode::bind_service(out, next, "Alpha", self.features, rng.bits()).expect("a short name");
            self.ids.push((next, Kind::Bind));
            return;
        }
        let id = if rng.percent(85) { next } else { self.any_id(rng) };
        match rng.below(20) {
            0 => {
                let name = rng.pick(&["Alpha", "Bravo", "Gamma", "", &long]);
                encode::bind_service(out, id, name, Features(rng.bits() as u32), rng.bits()).expect("it fits");
                self.ids.push((id, Kind::Bind));
            }
            1 => encode::cancel(out, self.any_id(rng)),
            2 | 3 => encode::credit(out, self.any_id(rng), rng.pick(&[0, 1, 4096, u32::MAX])),
            4 => {
                let identity = PeerIdentity { pid: Some(-1), machine_name: long.as_bytes(), ..Default::default() };
                plain::set_peer_identity(out, &identity).expect("it fits");
            }
            5 => encode::reply_ok(out, id, b"x", rng.percent(50), rng.percent(50)).expect("it fits"),
            6 => plain::request_error(out, id),
            // A frame that is empty, or not protobuf.
            7 => out.extend_from_slice(rng.pick(&[&[0, 0, 0, 0][..], &[2, 0, 0, 0, 255, 255], &[1, 0, 0, 0, 10]])),
            _ => {
                let packet = Packet::new(rng.pick(&[0, u64::MAX]), 0, rng.pick(&[0, 10, 1000])).encode();
                let args = if rng.one_in(10) { &[255, 255][..] } else { &packet };
                let call = InvokeMethod {
                    service_id: rng.pick(&[1, 1, 1, 2, 0, 3, u32::MAX]),
                    method_id: rng.pick(&[1, 2, 2, 3, 4, 0, 5, u32::MAX]),
                    args,
                    drop_reply: rng.one_in(6),
                    timeout_us: rng.pick(&[0, 0, 1, 1000, u64::MAX]),
                    window: rng.pick(&[None, Some(0), Some(1), Some(5000), Some(u32::MAX)]),
                };
                encode::invoke_method(out, id, &call, rng.one_in(10)).expect("it fits");
                self.ids.push((id, Kind::Call));
            }
        }
    }

    /// Appends a frame of a service.
    fn reply(&mut self, out: &mut Vec<u8>, rng: &mut Rng) {
        let bind = self.ids.iter().position(|(_, kind)| *kind == Kind::Bind);
        if let Some(at) = bind.filter(|_| rng.percent(90)) {
            let (id, _) = self.ids.swap_remove(at);
            let features = self.features;
            match rng.below(10) {
                0 => encode::bind_service_failed(out, id, features, 0),
                1 => {
                    let methods = (0..2000).map(|id| (id, "Get"));
                    encode::bind_service_reply(out, id, u32::MAX, methods, features, 1).expect("it fits");
                }
                _ => {
                    let names = ["Get", "Watch", "Note", "", "Late", "Tell"];
                    let methods = (rng.pick(&[1, 0, 100])..).zip(names);
                    encode::bind_service_reply(out, id, 1, methods, features, rng.bits()).expect("it fits");
                }
            }
            return;
        }
        let stream = self.ids.iter().position(|(_, kind)| *kind == Kind::Stream);
        if let Some(at) = stream.filter(|_| self.is_flooding) {
            let (id, _) = self.ids[at];
            let packet = Packet::new(id, 1, 50_000).encode();
            encode::reply_ok(out, id, &packet, true, false).expect("it fits");
            // The next one, if this one is over.
            if rng.one_in(60) {
                self.ids.remove(at);
            }
            return;
        }
        let id = self.any_id(rng);
        let len = rng.pick(&[0, 1, 30, 3000, 100_000]);
        match rng.below(12) {
            0 => {
                let text = vec![200; len];
                let code = rng.pick(&[-1, 0, 4, 8, 17, i32::MAX]);
                encode::reply_status(out, id, &WireStatus { code, text: &text, details: &text });
            }
            1 => plain::request_error(out, id),
            2 => encode::end_of_stream(out, id),
            3 => plain::reply_rejected(out, id),
            4 => encode::cancel(out, id),
            5 => out.extend_from_slice(rng.pick(&[&[0, 0, 0, 0][..], &[2, 0, 0, 0, 255, 255], &[1, 0, 0, 0, 10]])),
            6 => encode::bind_service_failed(out, id, self.features, 0),
            7 => encode::reply_ok(out, id, &vec![255; len], rng.percent(70), rng.one_in(8)).expect("it fits"),
            _ => {
                let packet = Packet::new(id, 1, len).encode();
                encode::reply_ok(out, id, &packet, rng.percent(85), rng.one_in(8)).expect("it fits");
            }
        }
    }
}
