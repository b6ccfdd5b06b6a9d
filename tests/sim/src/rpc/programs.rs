//! The clients' side of calls: futures and callbacks.

use std::future::{IntoFuture, poll_fn};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use esatto_ipc::channel::{Call, OneWayCall, StreamCall};
use esatto_ipc::service::{Kind, Rpc, method_of};
use esatto_ipc::{CallError, Channel};

use super::calls::{Plan, ended, note, plan_of, replied};
use super::descriptors;
use super::handlers::work;
use super::services::{
    AlphaGet, AlphaNote, AlphaWatch, BravoGet, BravoLate, BravoTell, BravoWatch, GammaGet, GammaNote, GammaWatch,
    Packet,
};
use super::shared::with;

pub(super) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Starts a call as planned. Returns a future unless it has a callback.
pub(super) fn start(channel: &Channel, call: u64, fd: Option<OwnedFd>) -> Option<Task> {
    let plan = plan_of(call);
    match (plan.target.service, plan.target.id) {
        ("Alpha", 1) => start_as::<AlphaGet>(channel, call, &plan, fd),
        ("Alpha", 2) => start_as::<AlphaWatch>(channel, call, &plan, fd),
        ("Alpha", 3) => start_as::<AlphaNote>(channel, call, &plan, fd),
        ("Bravo", 1) => start_as::<BravoWatch>(channel, call, &plan, fd),
        ("Bravo", 2) => start_as::<BravoGet>(channel, call, &plan, fd),
        ("Bravo", 3) => start_as::<BravoLate>(channel, call, &plan, fd),
        ("Bravo", 4) => start_as::<BravoTell>(channel, call, &plan, fd),
        ("Gamma", 1) => start_as::<GammaGet>(channel, call, &plan, fd),
        ("Gamma", 2) => start_as::<GammaWatch>(channel, call, &plan, fd),
        ("Gamma", 3) => start_as::<GammaNote>(channel, call, &plan, fd),
        (service, id) => panic!("{service} has no method {id}"),
    }
}

fn start_as<M: Rpc<Request = Packet, Reply = Packet>>(
    channel: &Channel,
    call: u64,
    plan: &Plan,
    fd: Option<OwnedFd>,
) -> Option<Task> {
    if plan.is_future {
        let channel = channel.clone();
        return Some(match method_of::<M>().kind {
            Kind::Unary => Box::pin(unary::<M>(channel, call, fd)),
            Kind::ServerStream => Box::pin(stream::<M>(channel, call, fd)),
            Kind::OneWay => Box::pin(one_way::<M>(channel, call, fd)),
        });
    }
    match method_of::<M>().kind {
        Kind::Unary => {
            let guard = Forgotten { call, is_over: false };
            let result = new_call::<M>(channel, call, plan, fd).then(move |result| {
                let mut guard = guard;
                guard.is_over = true;
                unary_end(call, result);
            });
            refused(call, result);
        }
        Kind::ServerStream => {
            let mut guard = Forgotten { call, is_over: false };
            let result = new_stream::<M>(channel, call, plan, fd).for_each(move |event| match event {
                Ok(Some(packet)) => replied(call, &packet),
                Ok(None) => guard.end(Ok(())),
                Err(error) => guard.end(Err(error)),
            });
            refused(call, result);
        }
        Kind::OneWay => {
            let result = new_one_way::<M>(channel, call, plan, fd).send_now();
            ended(call, result);
        }
    }
    None
}

/// Part of a callback. A channel that is dropped forgets its callbacks.
struct Forgotten {
    call: u64,
    is_over: bool,
}

impl Forgotten {
    fn end(&mut self, result: Result<(), CallError>) {
        self.is_over = true;
        ended(self.call, result);
    }
}

impl Drop for Forgotten {
    fn drop(&mut self) {
        let call = self.call;
        if !self.is_over && !std::thread::panicking() {
            with(|shared| {
                let Some(record) = shared.calls.get_mut(call as usize) else { return };
                if record.outcome.is_none() {
                    record.is_forgotten = true;
                }
            });
        }
    }
}

/// A call that was not sent gives its callback back.
fn refused(call: u64, result: Result<(), CallError>) {
    if let Err(error) = result {
        note(call, |record| record.is_forgotten = false);
        ended(call, Err(error));
    }
}

fn unary_end(call: u64, result: Result<Packet, CallError>) {
    match result {
        Ok(packet) => {
            replied(call, &packet);
            ended(call, Ok(()));
        }
        Err(error) => ended(call, Err(error)),
    }
}

fn new_call<'c, M: Rpc<Request = Packet, Reply = Packet>>(
    channel: &'c Channel,
    number: u64,
    plan: &Plan,
    fd: Option<OwnedFd>,
) -> Call<'c, M> {
    let mut call = Call::new(channel, &plan.request(number));
    if let Some(timeout_ns) = plan.timeout_ns {
        call = call.timeout(Duration::from_nanos(timeout_ns));
    }
    match fd {
        Some(fd) => call.attach(fd),
        None => call,
    }
}

fn new_stream<'c, M: Rpc<Request = Packet, Reply = Packet>>(
    channel: &'c Channel,
    number: u64,
    plan: &Plan,
    fd: Option<OwnedFd>,
) -> StreamCall<'c, M> {
    let mut call = StreamCall::new(channel, &plan.request(number));
    if let Some(timeout_ns) = plan.timeout_ns {
        call = call.timeout(Duration::from_nanos(timeout_ns));
    }
    match fd {
        Some(fd) => call.attach(fd),
        None => call,
    }
}

fn new_one_way<'c, M: Rpc<Request = Packet, Reply = Packet>>(
    channel: &'c Channel,
    number: u64,
    plan: &Plan,
    fd: Option<OwnedFd>,
) -> OneWayCall<'c, M> {
    let call = OneWayCall::new(channel, &plan.request(number));
    match fd {
        Some(fd) => call.attach(fd),
        None => call,
    }
}

/// Notes when a future is first polled, which is when its time begins.
fn started(call: u64) {
    with(|shared| shared.calls[call as usize].started_ns = shared.now_ns);
}

async fn unary<M: Rpc<Request = Packet, Reply = Packet>>(channel: Channel, call: u64, fd: Option<OwnedFd>) {
    let plan = plan_of(call);
    started(call);
    let future = new_call::<M>(&channel, call, &plan, fd).into_future();
    unary_end(call, future.await);
}

async fn stream<M: Rpc<Request = Packet, Reply = Packet>>(channel: Channel, call: u64, fd: Option<OwnedFd>) {
    let plan = plan_of(call);
    started(call);
    let mut stream = new_stream::<M>(&channel, call, &plan, fd);
    loop {
        match poll_fn(|cx| stream.poll_reply(cx)).await {
            Some(Ok(packet)) => {
                replied(call, &packet);
                check_reply_fd(call, &plan, packet.number, stream.take_fd());
                work(plan.slow_ns).await;
            }
            Some(Err(error)) => break ended(call, Err(error)),
            None => break ended(call, Ok(())),
        }
    }
    let again = poll_fn(|cx| Poll::Ready(stream.poll_reply(cx))).await;
    assert!(matches!(again, Poll::Ready(None)), "nothing comes after the end of a call: {call}");
}

async fn one_way<M: Rpc<Request = Packet, Reply = Packet>>(channel: Channel, call: u64, fd: Option<OwnedFd>) {
    let plan = plan_of(call);
    started(call);
    let result = new_one_way::<M>(&channel, call, &plan, fd).send_async().await;
    ended(call, result);
}

fn check_reply_fd(call: u64, plan: &Plan, number: u64, fd: Option<esatto_ipc::ForeignFd>) {
    let expected = with(|shared| {
        let wire = &shared.wires[plan.connection].wire;
        let is_exact = wire.are_both_honest() && wire.marks_descriptors() && number > 0;
        is_exact.then(|| shared.calls[call as usize].reply_fds.get(number as usize - 1).copied().flatten())
    });
    let Some(expected) = expected else { return };
    assert_eq!(fd.is_some(), expected.is_some(), "a descriptor arrives with its message: reply {number} of {call}");
    if let (Some(fd), Some(expected)) = (fd, expected) {
        descriptors::check(fd, expected);
    }
}

/// Polls a task. Returns true if it has ended.
pub(super) fn poll(task: &mut Task, cx: &mut Context<'_>) -> bool {
    task.as_mut().poll(cx).is_ready()
}
