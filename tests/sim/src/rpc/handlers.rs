//! The servers' side of calls. `Alpha` is a `Handler`: it answers at once, later, or never. `Bravo`
//! has an `async fn` for each method.

use std::cell::RefCell;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use esatto_ipc::server::{Context as CallContext, Dispatch, Incoming, Invocation, Replies, Reply, SendError};
use esatto_ipc::service::{Kind, Rpc, Service};
use esatto_ipc::{Code, ForeignFd, Status};

use super::calls::{FITS, Plan, Record, ServerEnd, check_closed, invoked, note, sent};
use super::descriptors;
use super::services::{AlphaGet, AlphaNote, AlphaWatch, BravoGet, BravoLate, BravoTell, BravoWatch, Packet, Target};
use super::shared::{nanoseconds, new_waker, now_ns, tell, with};
use crate::alloc;
use crate::rng::Rng;

/// Handle by which a call is answered later.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) call: u64,
    kind: HandleKind,
    plan: Arc<Plan>,
    /// Replies that were sent or given up.
    done: usize,
    pub(super) due_ns: u64,
    /// It waits until its waker is called, whose number this is.
    pub(super) is_waiting: bool,
    pub(super) number: u64,
    waker: Waker,
}

#[derive(Debug)]
enum HandleKind {
    Reply(Reply<Packet>),
    Replies(Replies<Packet>),
}

std::thread_local! {
    /// Handles that handlers have kept.
    static KEPT: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

/// Takes the handles that handlers have kept since the last time.
pub(super) fn take_kept() -> Vec<Handle> {
    alloc::uncounted(|| KEPT.take())
}

/// Services of one connection.
#[derive(Debug)]
pub(super) struct Services {
    pub(super) connection: usize,
    pub(super) offer: &'static [&'static Service],
}

impl Dispatch for Services {
    fn service(&self, index: usize) -> Option<&'static Service> {
        self.offer.get(index).copied()
    }

    fn dispatch(&mut self, call: Invocation<'_>) {
        let connection = self.connection;
        match call.method().full_name {
            "Alpha.Get" => unary::<AlphaGet>(connection, Incoming::new(call)),
            "Alpha.Watch" => stream::<AlphaWatch>(connection, Incoming::new(call)),
            "Alpha.Note" => one_way::<AlphaNote>(connection, Incoming::new(call)),
            "Bravo.Watch" => run_stream::<BravoWatch>(connection, call),
            "Bravo.Get" => run_unary::<BravoGet>(connection, call),
            "Bravo.Late" => run_unary::<BravoLate>(connection, call),
            "Bravo.Tell" => run_one_way::<BravoTell>(connection, call),
            other => panic!("nobody offers {other}"),
        }
    }
}

/// Notes that a call runs, and returns its number and plan. Hostile clients make calls that no
/// program has planned.
fn begin(connection: usize, kind: Kind, request: &Packet, deadline_ns: Option<u64>) -> (u64, Arc<Plan>) {
    let number = with(|shared| {
        let is_planned =
            |record: &&Record| record.is_honest && record.plan.connection == connection && request.call > 0;
        if shared.calls.get(request.call as usize).filter(is_planned).is_some() {
            return request.call;
        }
        let plan = unplanned(connection, kind, &mut shared.rng);
        shared.calls.push(Record::new(plan, false, shared.now_ns));
        shared.calls.len() as u64 - 1
    });
    (number, invoked(number, request, deadline_ns))
}

fn unplanned(connection: usize, kind: Kind, rng: &mut Rng) -> Plan {
    let most = if kind == Kind::ServerStream { rng.pick(&[0, 3, 40]) } else { 1 };
    let len = rng.pick(&[0, 10, 3000, 100_000]);
    Plan {
        connection,
        target: Target { service: "Alpha", id: 0, kind },
        is_future: false,
        request_len: 0,
        fd: None,
        timeout_ns: None,
        slow_ns: 0,
        is_immediate: rng.percent(50),
        work_ns: rng.pick(&[0, 1_000, 10_000_000]),
        replies: (0..most).map(|_| rng.between(0, len) as usize).collect(),
        has_reply_fds: false,
        end: if kind == Kind::ServerStream { ServerEnd::Finish } else { ServerEnd::LastReply },
    }
}

/// Checks a descriptor that came with a request.
fn check_fd(call: u64, plan: &Plan, fd: Option<ForeignFd>) {
    let is_exact = with(|shared| {
        let wire = &shared.wires[plan.connection].wire;
        wire.are_both_honest() && wire.marks_descriptors()
    });
    if is_exact {
        assert_eq!(fd.is_some(), plan.fd.is_some(), "a descriptor arrives with its message: call {call}");
    }
    if let (Some(fd), Some(number), true) = (fd, plan.fd, is_exact) {
        descriptors::check(fd, number);
    }
}

fn takes_fd() -> bool {
    with(|shared| shared.rng.percent(70))
}

fn unary<M: Rpc<Request = Packet, Reply = Packet>>(connection: usize, mut call: Incoming<'_, M>) {
    let request = match call.request() {
        Ok(request) => request,
        Err(status) => return call.fail(&status),
    };
    let (number, plan) = begin(connection, Kind::Unary, &request, call.deadline().map(nanoseconds));
    if takes_fd() {
        check_fd(number, &plan, call.take_fd());
    }
    Handle::new(number, plan, HandleKind::Reply(call.into_reply())).start();
}

fn stream<M: Rpc<Request = Packet, Reply = Packet>>(connection: usize, mut call: Incoming<'_, M>) {
    let request = match call.request() {
        Ok(request) => request,
        Err(status) => return call.fail(&status),
    };
    let (number, plan) = begin(connection, Kind::ServerStream, &request, call.deadline().map(nanoseconds));
    if takes_fd() {
        check_fd(number, &plan, call.take_fd());
    }
    Handle::new(number, plan, HandleKind::Replies(call.into_replies())).start();
}

fn one_way<M: Rpc<Request = Packet, Reply = Packet>>(connection: usize, mut call: Incoming<'_, M>) {
    let Ok(request) = call.request() else { return };
    let (number, plan) = begin(connection, Kind::OneWay, &request, call.deadline().map(nanoseconds));
    if takes_fd() && request.call > 0 {
        check_fd(number, &plan, call.take_fd());
    }
}

impl Handle {
    fn new(call: u64, plan: Arc<Plan>, kind: HandleKind) -> Self {
        let (number, waker) = new_waker();
        Self { call, kind, plan, done: 0, due_ns: 0, is_waiting: false, number, waker }
    }

    /// Answers at once or keeps the handle, as planned.
    fn start(mut self) {
        if self.plan.is_immediate {
            while !self.is_waiting {
                match self.act() {
                    Some(more) => self = more,
                    None => return,
                }
            }
        }
        self.due_ns = due_ns(self.plan.work_ns);
        alloc::uncounted(|| KEPT.with_borrow_mut(|kept| kept.push(self)));
    }

    /// Does the next thing. Returns `None` if the call is over.
    pub(super) fn act(mut self) -> Option<Self> {
        self.is_waiting = false;
        match self.kind {
            HandleKind::Reply(reply) => {
                answer(self.call, &self.plan, reply);
                return None;
            }
            HandleKind::Replies(mut replies) => {
                if replies.is_cancelled() {
                    check_closed(self.call);
                }
                let is_last = self.plan.end == ServerEnd::LastReply && self.done + 1 == self.plan.replies.len();
                if self.done == self.plan.replies.len() || is_last {
                    finish(self.call, &self.plan, replies, is_last);
                    return None;
                }
                let packet = self.plan.reply(self.call, self.done as u64 + 1);
                let result = replies.try_send(&packet);
                sent(self.call, result, None);
                match result {
                    Ok(()) => self.done += 1,
                    Err(SendError::Full) => {
                        // The attempt may have written what was queued, which makes room.
                        self.is_waiting = replies.poll_ready(&Context::from_waker(&self.waker)).is_pending();
                    }
                    Err(SendError::TooLarge { .. }) => {
                        // It gives up.
                        let status = Status::from(result.expect_err("it is an error"));
                        replies.fail(&status);
                        return None;
                    }
                    Err(_) => return None,
                }
                self.kind = HandleKind::Replies(replies);
            }
        }
        self.due_ns = due_ns(self.plan.work_ns);
        Some(self)
    }
}

/// Answers a unary call as planned.
fn answer(call: u64, plan: &Plan, mut reply: Reply<Packet>) {
    let is_open = !reply.is_cancelled();
    if !is_open {
        check_closed(call);
    }
    match plan.end {
        ServerEnd::Fail(code) => {
            note(call, |record| record.server_end = Some(plan.end));
            reply.fail(&failure(code));
        }
        ServerEnd::Drop => {
            note(call, |record| record.server_end = Some(plan.end));
            drop(reply);
        }
        ServerEnd::Finish | ServerEnd::LastReply => {
            let packet = plan.reply(call, 1);
            note_last(call, plan, is_open);
            if let Some((_, fd)) = Some(plan.has_reply_fds).filter(|has| *has).and_then(|_| descriptors::make()) {
                reply = reply.attach(fd);
            }
            reply.send(&packet);
        }
    }
}

/// Notes the last reply before it is sent, because nobody tells then.
fn note_last(call: u64, plan: &Plan, is_open: bool) {
    note(call, |record| {
        if plan.replies[plan.replies.len() - 1] > FITS {
            record.was_too_large = true;
        } else if is_open {
            record.sent += 1;
            record.server_end = Some(ServerEnd::LastReply);
        }
    });
}

/// Ends a stream as planned.
fn finish(call: u64, plan: &Plan, replies: Replies<Packet>, is_last: bool) {
    tell!("call {call}: the server ends it: {:?}", plan.end);
    if is_last {
        let packet = plan.reply(call, plan.replies.len() as u64);
        note_last(call, plan, !replies.is_cancelled());
        return replies.finish_with(&packet);
    }
    note(call, |record| record.server_end = Some(plan.end));
    match plan.end {
        ServerEnd::Fail(code) => replies.fail(&failure(code)),
        ServerEnd::Drop => drop(replies),
        // A stream without replies.
        ServerEnd::Finish | ServerEnd::LastReply => replies.finish(),
    }
}

fn failure(code: i32) -> Status {
    Status::new(Code::from_number(code), "as planned").with_details([1, 2, 3])
}

fn due_ns(work_ns: u64) -> u64 {
    with(|shared| shared.now_ns + shared.rng.between(0, work_ns))
}

/// Waits for a part of this time.
pub(super) async fn work(work_ns: u64) {
    if work_ns == 0 {
        return;
    }
    let at_ns = due_ns(work_ns);
    let mut told: Option<Waker> = None;
    poll_fn(|cx| {
        if now_ns() >= at_ns {
            return Poll::Ready(());
        }
        if !told.as_ref().is_some_and(|told| told.will_wake(cx.waker())) {
            told = Some(cx.waker().clone());
            with(|shared| shared.add_timer(at_ns, cx.waker().clone()));
        }
        Poll::Pending
    })
    .await;
}

/// Notes that the future of a call was dropped before its end.
struct Running {
    call: u64,
    is_over: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_over && !std::thread::panicking() {
            check_closed(self.call);
        }
    }
}

fn run_unary<M: Rpc<Request = Packet, Reply = Packet>>(connection: usize, call: Invocation<'_>) {
    call.unary::<M, _>(|context: CallContext, request| async move {
        let (call, plan) = begin(connection, Kind::Unary, &request, context.deadline().map(nanoseconds));
        let mut running = Running { call, is_over: false };
        if takes_fd() {
            check_fd(call, &plan, context.take_fd());
        }
        if !plan.is_immediate {
            work(plan.work_ns).await;
        }
        let is_open = !context.is_cancelled();
        if !is_open {
            check_closed(call);
        }
        running.is_over = true;
        match plan.end {
            ServerEnd::Fail(code) => {
                note(call, |record| record.server_end = Some(plan.end));
                Err(failure(code))
            }
            _ => {
                note_last(call, &plan, is_open);
                Ok(plan.reply(call, 1))
            }
        }
    });
}

fn run_stream<M: Rpc<Request = Packet, Reply = Packet>>(connection: usize, call: Invocation<'_>) {
    call.stream::<M, _>(|context: CallContext, request, mut replies| async move {
        let (call, plan) = begin(connection, Kind::ServerStream, &request, context.deadline().map(nanoseconds));
        let mut running = Running { call, is_over: false };
        if takes_fd() {
            check_fd(call, &plan, context.take_fd());
        }
        for number in 1..=plan.replies.len() as u64 {
            if !plan.is_immediate {
                work(plan.work_ns).await;
            }
            let packet = plan.reply(call, number);
            let fd = if plan.has_reply_fds { descriptors::make() } else { None };
            let result = match fd {
                Some((fd_number, fd)) => {
                    // It may arrive as soon as it is sent.
                    note(call, |record| record.reply_fds.push(Some(fd_number)));
                    replies.send_with_fd(&packet, fd).await
                }
                None => {
                    note(call, |record| record.reply_fds.push(None));
                    replies.send(&packet).await
                }
            };
            sent(call, result, None);
            if let Err(error) = result {
                running.is_over = true;
                return Err(error.into());
            }
        }
        running.is_over = true;
        let is_failure = matches!(plan.end, ServerEnd::Fail(_));
        note(call, |record| record.server_end = Some(if is_failure { plan.end } else { ServerEnd::Finish }));
        match plan.end {
            ServerEnd::Fail(code) => Err(failure(code)),
            _ => Ok(()),
        }
    });
}

fn run_one_way<M: Rpc<Request = Packet, Reply = Packet>>(connection: usize, call: Invocation<'_>) {
    call.one_way::<M, _>(|context: CallContext, request| async move {
        let (_, plan) = begin(connection, Kind::OneWay, &request, context.deadline().map(nanoseconds));
        work(plan.work_ns).await;
        drop(context);
    });
}
