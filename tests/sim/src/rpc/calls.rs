//! [`Record`]: what a program planned for a call, and what both sides saw of it.

use std::sync::Arc;

use esatto_ipc::frame::rpc::Features;
use esatto_ipc::server::SendError;
use esatto_ipc::service::Kind;
use esatto_ipc::{CallError, Code, Status};

use super::services::{GAMMA, Packet, Target};
use super::shared::{Shared, tell, with};

/// Larger requests and replies fit in no frame.
pub(super) const TOO_LARGE: usize = 131_072;

/// Smaller ones always fit.
pub(super) const FITS: usize = TOO_LARGE - 120;

/// Call as its programs plan it.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) connection: usize,
    pub(super) target: Target,
    /// The client awaits the call; otherwise it has a callback.
    pub(super) is_future: bool,
    pub(super) request_len: usize,
    /// Number of the descriptor that travels with the request.
    pub(super) fd: Option<u64>,
    pub(super) timeout_ns: Option<u64>,
    /// Longest time for which the client looks at a reply.
    pub(super) slow_ns: u64,
    /// The handler answers before it returns.
    pub(super) is_immediate: bool,
    /// Longest time that the server needs for a reply.
    pub(super) work_ns: u64,
    /// Sizes of the replies of a stream, or of the reply.
    pub(super) replies: Vec<usize>,
    /// Each reply of a stream has a descriptor.
    pub(super) has_reply_fds: bool,
    pub(super) end: ServerEnd,
}

/// End of a call by its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerEnd {
    /// The stream ends after the last reply, without a message.
    Finish,
    /// The last reply ends the call, as that of a unary call does.
    LastReply,
    /// The call fails with this code.
    Fail(i32),
    /// The handler forgets the call.
    Drop,
}

#[derive(Debug)]
pub(super) struct Record {
    pub(super) plan: Arc<Plan>,
    /// Both sides keep to the rules.
    pub(super) is_honest: bool,
    /// Time of the first attempt to send it.
    pub(super) started_ns: u64,
    /// Replies that the client took, and the end that it saw.
    pub(super) received: u64,
    pub(super) outcome: Option<Result<(), CallError>>,
    /// The program does not wait any more.
    pub(super) is_abandoned: bool,
    /// The callback was dropped before it was called.
    pub(super) is_forgotten: bool,
    /// How often the server ran the call, the replies that it sent, and its end.
    pub(super) invoked: u64,
    pub(super) sent: u64,
    pub(super) server_end: Option<ServerEnd>,
    /// A reply did not fit in a frame.
    pub(super) was_too_large: bool,
    /// Numbers of the descriptors of replies.
    pub(super) reply_fds: Vec<Option<u64>>,
    pub(super) flow: Option<u64>,
}

impl Record {
    pub(super) fn new(plan: Plan, is_honest: bool, now_ns: u64) -> Self {
        Self {
            plan: Arc::new(plan),
            is_honest,
            started_ns: now_ns,
            received: 0,
            outcome: None,
            is_abandoned: false,
            is_forgotten: false,
            invoked: 0,
            sent: 0,
            server_end: None,
            was_too_large: false,
            reply_fds: Vec::new(),
            flow: None,
        }
    }

    /// Returns true if the client does not wait any more.
    pub(super) fn is_over(&self) -> bool {
        self.outcome.is_some() || self.is_abandoned
    }

    fn deadline_ns(&self) -> Option<u64> {
        self.plan.timeout_ns.map(|timeout_ns| self.started_ns + timeout_ns)
    }
}

impl Plan {
    pub(super) fn request(&self, call: u64) -> Packet {
        Packet::new(call, 0, self.request_len)
    }

    /// Returns the reply with a number, from 1.
    pub(super) fn reply(&self, call: u64, number: u64) -> Packet {
        Packet::new(call, number, self.replies[number as usize - 1])
    }
}

pub(super) fn plan_of(call: u64) -> Arc<Plan> {
    with(|shared| Arc::clone(&shared.calls[call as usize].plan))
}

/// Changes the record of a call; counts as progress.
pub(super) fn note<T>(call: u64, change: impl FnOnce(&mut Record) -> T) -> T {
    with(|shared| {
        shared.progress += 1;
        change(&mut shared.calls[call as usize])
    })
}

/// The client got a reply.
pub(super) fn replied(call: u64, packet: &Packet) {
    tell!("call {call}: the client takes reply {} ({} bytes)", packet.number, packet.content.len());
    note(call, |record| {
        assert!(!record.is_over(), "nothing comes after the end of a call: {record:?}");
        record.received += 1;
        if record.is_honest {
            assert!(record.received <= record.sent, "no reply is doubled: call {call}, {record:?}");
            let expected = record.plan.reply(call, record.received);
            assert!(
                *packet == expected,
                "replies come whole and in order: call {call} got reply {} of call {} in place of {}",
                packet.number,
                packet.call,
                record.received
            );
        }
    });
}

/// The client's call ended.
pub(super) fn ended(call: u64, outcome: Result<(), CallError>) {
    if std::thread::panicking() {
        return;
    }
    tell!("call {call}: ends with {outcome:?}");
    with(|shared| {
        shared.progress += 1;
        let Shared { calls, wires, now_ns, .. } = shared;
        let record = &mut calls[call as usize];
        assert!(!record.is_over(), "a call ends once: call {call} with {outcome:?}, {record:?}");
        let wire = &wires[record.plan.connection].wire;
        if record.is_honest {
            let has_status = wire.has(Features::STATUS);
            record.check_outcome(&outcome, *now_ns, wire.is_cut, has_status);
        }
        record.outcome = Some(outcome);
    });
}

impl Record {
    fn check_outcome(&self, outcome: &Result<(), CallError>, now_ns: u64, is_cut: bool, has_status: bool) {
        let (plan, name) = (&self.plan, self.plan.target);
        match outcome {
            Ok(()) if plan.target.kind == Kind::OneWay => {}
            Ok(()) => {
                let is_finished = matches!(self.server_end, Some(ServerEnd::Finish | ServerEnd::LastReply));
                assert!(is_finished, "a call succeeds if its server says so: {self:?}");
                assert_eq!(self.received, self.sent, "no reply is lost: {self:?}");
            }
            Err(CallError::Timeout(_)) => {
                let deadline_ns = self.deadline_ns().expect("only a call with a deadline is out of time");
                assert!(deadline_ns <= now_ns, "no deadline is early: {} ns, {self:?}", deadline_ns - now_ns);
            }
            Err(CallError::Disconnected(_)) => assert!(is_cut, "an open connection serves its calls: {self:?}"),
            Err(CallError::NoSuchService(_)) => assert_eq!(name.service, GAMMA.name, "a service is offered: {self:?}"),
            Err(CallError::NoSuchMethod(_)) => {
                assert!(name.service == "Bravo" && name.id > 2, "a method is offered: {self:?}");
            }
            Err(CallError::TooLarge { .. }) => assert!(plan.request_len > FITS, "a request fits: {self:?}"),
            Err(CallError::QueueFull(_)) => {
                assert!(!plan.is_future || plan.target.kind == Kind::OneWay, "a future waits for room: {self:?}");
            }
            Err(CallError::Status { status, .. }) => self.check_status(status, now_ns, has_status),
            Err(error) => panic!("a call fails for a documented reason: {error:?}, {self:?}"),
        }
    }

    fn check_status(&self, status: &Status, now_ns: u64, has_status: bool) {
        let is_refused = self.invoked == 0;
        let is_late = self.deadline_ns().is_some_and(|deadline_ns| deadline_ns <= now_ns);
        if !has_status {
            assert_eq!((status.code(), status.text()), (Code::Unknown, "rejected"), "a status is agreed upon");
        }
        if is_refused {
            let is_refusal = status.code() == Code::ResourceExhausted && status.text().contains("open");
            assert!(is_refusal || !has_status, "a call is refused because too many are open: {status:?}, {self:?}");
            return;
        }
        let expected = match self.server_end {
            Some(ServerEnd::Fail(number)) => Code::from_number(number),
            Some(ServerEnd::Drop) => Code::Unknown,
            _ if self.was_too_large => Code::ResourceExhausted,
            // The service's clock was faster, and it could not say so.
            _ if is_late && !has_status => return,
            _ => panic!("a call fails if its server says so: {status:?}, {self:?}"),
        };
        assert!(status.code() == expected || !has_status, "the status is the server's: {status:?}, {self:?}");
        assert_eq!(self.received, self.sent, "no reply before the failure is lost: {self:?}");
    }
}

/// The server got a call. Returns its plan.
pub(super) fn invoked(call: u64, request: &Packet, deadline_ns: Option<u64>) -> Arc<Plan> {
    tell!("call {call}: the server runs it");
    with(|shared| {
        shared.progress += 1;
        let Shared { calls, wires, .. } = shared;
        let record = &mut calls[call as usize];
        record.invoked += 1;
        if record.is_honest {
            assert_eq!(record.invoked, 1, "a call runs once: {record:?}");
            assert!(*request == record.plan.request(call), "a request arrives whole: call {call}");
            let has_deadline = wires[record.plan.connection].wire.has(Features::DEADLINE);
            assert_eq!(
                deadline_ns.is_some(),
                record.plan.timeout_ns.is_some() && has_deadline,
                "a deadline travels with call {call}"
            );
            if let (Some(deadline_ns), Some(ours)) = (deadline_ns, record.deadline_ns()) {
                assert!(deadline_ns >= ours, "no deadline is early: {} ns, {record:?}", ours - deadline_ns);
            }
        }
        Arc::clone(&record.plan)
    })
}

/// The server tried to send a reply. `end` is set if it was meant to be the last one.
pub(super) fn sent(call: u64, result: Result<(), SendError>, end: Option<ServerEnd>) {
    tell!("call {call}: the server sends a reply: {result:?}");
    match result {
        Ok(()) => note(call, |record| {
            record.sent += 1;
            record.server_end = end;
        }),
        Err(SendError::TooLarge { .. }) => note(call, |record| {
            let next = record.plan.replies[record.sent as usize];
            assert!(next > FITS, "a reply fits: {record:?}");
            record.was_too_large = true;
        }),
        Err(SendError::Closed) => check_closed(call),
        Err(_) => {}
    }
}

/// Checks that a call that the server finds closed has a reason for it.
pub(super) fn check_closed(call: u64) {
    with(|shared| {
        let Shared { calls, wires, now_ns, progress, .. } = shared;
        *progress += 1;
        let record = &calls[call as usize];
        if record.is_honest {
            let is_late = record.deadline_ns().is_some_and(|deadline_ns| deadline_ns <= *now_ns);
            let is_cut = wires[record.plan.connection].wire.is_cut;
            assert!(is_late || is_cut || record.is_abandoned, "a call stays open while its client waits: {record:?}");
        }
    });
}
