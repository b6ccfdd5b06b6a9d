//! [`Wire`]: the rules of the frames of one connection (`docs/spec/wire-protocol.md` §4, §23),
//! checked on the bytes that honest sides send. It knows nothing of the library's own state.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use esatto_ipc::FrameDecoder;
use esatto_ipc::frame::rpc::{Features, RpcBody, RpcFrame};
use esatto_ipc::service::{Kind, Service};

use super::net::Side;

/// Room that a descriptor costs.
const ROOM_OF_DESCRIPTOR: usize = 16_384;

#[derive(Debug)]
pub(super) struct Wire {
    offer: &'static [&'static Service],
    /// Sides that keep to the rules: client, server.
    honest: [bool; 2],
    pub(super) is_cut: bool,
    decoders: [FrameDecoder; 2],
    /// Places of the descriptors that were sent.
    fds: [BTreeSet<u64>; 2],
    /// Extensions that both sides know, after the first bind was answered.
    features: Option<Features>,
    requests: BTreeSet<u64>,
    binds: BTreeSet<u64>,
    calls: BTreeMap<u64, Call>,
    /// Requests that the server has not received, with the number of the byte after them.
    coming: VecDeque<(u64, Coming)>,
}

#[derive(Debug)]
struct Call {
    kind: Kind,
    /// Room that the server may know.
    room: Option<i64>,
    /// Bytes of replies that cost room.
    replied: u64,
    credit: u64,
    is_received: bool,
    is_cancelled: bool,
    /// The server has received the cancel, and has handled it.
    cancel_received: bool,
    cancel_handled: bool,
    has_ended: bool,
}

#[derive(Clone, Copy, Debug)]
enum Coming {
    Call(u64),
    Credit(u64, u32),
    Cancel(u64),
}

impl Wire {
    pub(super) fn new(offer: &'static [&'static Service], honest: [bool; 2]) -> Self {
        Self {
            offer,
            honest,
            is_cut: false,
            decoders: Default::default(),
            fds: Default::default(),
            features: None,
            requests: BTreeSet::new(),
            binds: BTreeSet::new(),
            calls: BTreeMap::new(),
            coming: VecDeque::new(),
        }
    }

    pub(super) fn is_honest(&self, side: Side) -> bool {
        self.honest[side as usize]
    }

    pub(super) fn are_both_honest(&self) -> bool {
        self.honest == [true, true]
    }

    /// Returns true if frames say if they carry a descriptor.
    pub(super) fn marks_descriptors(&self) -> bool {
        self.features.is_some_and(|features| features.has(Features::DESCRIPTORS))
    }

    /// Returns true if the client tells the server its deadlines, and the server its status.
    pub(super) fn has(&self, feature: Features) -> bool {
        self.features.is_some_and(|features| features.has(feature))
    }

    /// Checks bytes that a side has sent, beginning at byte `at`.
    pub(super) fn sent(&mut self, side: Side, at: u64, mut bytes: &[u8], has_fd: bool) {
        if !self.is_honest(side) {
            return;
        }
        if has_fd {
            self.fds[side as usize].insert(at);
        }
        let mut decoder = std::mem::take(&mut self.decoders[side as usize]);
        while !bytes.is_empty() {
            let taken = decoder.push(bytes);
            bytes = &bytes[taken..];
            loop {
                let begin = decoder.consumed();
                let Some((frame, len)) = decoder.next_rpc_frame().expect("frames are small enough") else { break };
                let has_fd = self.fds[side as usize].remove(&begin);
                if !self.are_both_honest() {
                    continue;
                }
                self.check_descriptor(&frame, has_fd);
                match side {
                    Side::Client => self.request(&frame, begin + len as u64),
                    Side::Server => self.reply(&frame, len),
                }
            }
        }
        assert_eq!(decoder.skipped(), 0, "frames are valid: the {side:?} sent another one");
        self.decoders[side as usize] = decoder;
    }

    /// Notes that the other side has received bytes, up to the byte `end`.
    pub(super) fn received(&mut self, from: Side, end: u64) {
        if from == Side::Server || !self.are_both_honest() {
            return;
        }
        while let Some((_, coming)) = self.coming.pop_front_if(|(at, _)| *at <= end) {
            match coming {
                Coming::Call(id) => self.calls.get_mut(&id).expect("it was sent").is_received = true,
                Coming::Cancel(id) => self.calls.get_mut(&id).expect("it was sent").cancel_received = true,
                Coming::Credit(id, bytes) => {
                    let room = &mut self.calls.get_mut(&id).expect("it was sent").room;
                    *room = room.map(|room| room + i64::from(bytes));
                }
            }
        }
    }

    /// Notes that the server has handled all that it received, and sent all that it queued.
    pub(super) fn all_handled(&mut self) {
        for call in self.calls.values_mut() {
            call.cancel_handled |= call.cancel_received;
        }
    }

    /// Checks the end of a connection that nothing has cut, when nothing happens any more.
    pub(super) fn check_end(&self) {
        for (id, call) in &self.calls {
            let is_over = call.has_ended || call.is_cancelled || call.kind == Kind::OneWay;
            assert!(is_over, "every call is answered: {id} is not: {call:?}");
        }
        assert!(self.binds.is_empty(), "every bind is answered: {:?} are not", self.binds);
    }

    fn check_descriptor(&self, frame: &RpcFrame<'_>, has_fd: bool) {
        let is_marked = has_fd && self.marks_descriptors();
        assert_eq!(frame.has_fd, is_marked, "a frame says if it carries a descriptor: {frame:?}");
    }

    fn request(&mut self, frame: &RpcFrame<'_>, end: u64) {
        let id = frame.request_id;
        let is_first = self.requests.is_empty();
        if matches!(frame.body, RpcBody::BindService { .. } | RpcBody::InvokeMethod(_)) {
            assert!(id > 0 && self.requests.insert(id), "each request has an id of its own: {frame:?}");
        }
        let extends = |features: Features| assert!(self.has(features), "an extension is agreed upon before: {frame:?}");
        match frame.body {
            RpcBody::BindService { .. } => {
                assert!(is_first || frame.features == Features::default(), "only the first bind tells extensions");
                self.binds.insert(id);
            }
            RpcBody::InvokeMethod(call) => {
                let service = self.offer.get(call.service_id.wrapping_sub(1) as usize);
                let method = service.and_then(|service| service.method(call.method_id));
                let kind = method.expect("a client calls methods that the server offers").kind;
                assert_eq!(call.drop_reply, kind == Kind::OneWay, "one-way methods want no reply: {frame:?}");
                if call.timeout_us != 0 {
                    extends(Features::DEADLINE);
                }
                if call.window.is_some() {
                    extends(Features::CREDIT);
                }
                let room = call.window.map(i64::from);
                let call = Call {
                    kind,
                    room,
                    replied: 0,
                    credit: 0,
                    is_received: false,
                    is_cancelled: false,
                    cancel_received: false,
                    cancel_handled: false,
                    has_ended: false,
                };
                self.calls.insert(id, call);
                self.coming.push_back((end, Coming::Call(id)));
            }
            RpcBody::Cancel => {
                extends(Features::CANCEL);
                let call = self.calls.get_mut(&id).expect("only calls that were sent are cancelled");
                assert!(!call.is_cancelled && call.kind != Kind::OneWay, "a call is cancelled once: {frame:?}");
                call.is_cancelled = true;
                self.coming.push_back((end, Coming::Cancel(id)));
            }
            RpcBody::Credit { bytes } => {
                extends(Features::CREDIT);
                let call = self.calls.get_mut(&id).expect("only calls that were sent get credit");
                assert!(call.room.is_some() && !call.is_cancelled, "credit is for open streams: {frame:?}");
                call.credit += u64::from(bytes);
                assert!(call.credit <= call.replied, "credit is for replies that were taken: {frame:?}");
                self.coming.push_back((end, Coming::Credit(id, bytes)));
            }
            ref other => panic!("clients send no {other:?}"),
        }
    }

    fn reply(&mut self, frame: &RpcFrame<'_>, len: usize) {
        let id = frame.request_id;
        match frame.body {
            RpcBody::BindServiceReply { .. } => {
                assert!(self.binds.remove(&id), "a bind is answered once: {frame:?}");
                if self.features.is_none() {
                    self.features = Some(frame.features);
                }
            }
            RpcBody::InvokeMethodReply { success, has_more, status, .. } => {
                let has_status = self.has(Features::STATUS);
                let call = self.calls.get_mut(&id).expect("only calls are answered");
                assert!(call.is_received, "a call is answered after it arrived: {frame:?}");
                assert!(!call.has_ended, "nothing follows the end of a call: {frame:?}");
                assert!(!call.cancel_handled, "nothing follows a cancel: {frame:?}");
                assert_ne!(call.kind, Kind::OneWay, "one-way calls have no reply: {frame:?}");
                assert!(status.is_none() || has_status, "an extension is agreed upon before: {frame:?}");
                assert!(!has_more || call.kind == Kind::ServerStream, "one reply to a unary call: {frame:?}");
                if success && has_more {
                    let len = len + if frame.has_fd { ROOM_OF_DESCRIPTOR } else { 0 };
                    if let Some(room) = &mut call.room {
                        assert!(*room > 0, "a window is kept: {room} is left for {len} bytes of call {id}");
                        *room -= len as i64;
                    }
                    call.replied += len as u64;
                }
                call.has_ended = !has_more;
            }
            ref other => panic!("servers send no {other:?}"),
        }
    }
}
