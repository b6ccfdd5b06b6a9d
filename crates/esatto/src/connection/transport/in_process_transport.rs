//! A connection to the service in this process, by function calls.

use std::collections::VecDeque;
use std::time::Duration;

use esatto_map::Map;
use esatto_ports::producer_port::method::CommitData;

use super::rpc::{Call, Reply, SharedMemory, TransportEvent, name_of};
use crate::os::OwnedFd;

/// A service in this process, as its connections and the control thread use it.
pub(crate) trait InProcessService: core::fmt::Debug + Send {
    fn connect(&mut self, port: Port) -> u64;

    fn disconnect(&mut self, client: u64, port: Port);

    /// Makes a call. Returns false if the service does not have the method.
    fn invoke(&mut self, client: u64, request: u64, port: Port, method: &str, args: &[u8], fd: Option<OwnedFd>)
    -> bool;

    /// Returns whether commits have to wait until a file has taken data. The control thread is
    /// woken when it has.
    fn must_wait(&self) -> bool;

    /// Returns the next reply to a client.
    fn next_reply(&mut self, client: u64) -> Option<Delivery>;

    /// Tells the service that the client has taken all replies and can take more. Returns whether
    /// the service waited for that.
    fn ready(&mut self, client: u64) -> bool;

    /// Returns the time until the next timer is due.
    fn next_deadline(&self) -> Option<Duration>;

    /// Fires the timers that are due, and handles the results of file operations.
    fn work(&mut self);
    /// Writes what closed sessions still have to write into their files, because the program or its
    /// tracing ends.
    fn complete_files(&mut self);
}

/// The service in this process, if it runs.
pub(crate) type InProcess = Option<Box<dyn InProcessService>>;

/// A reply that waits for its client.
pub(crate) struct Delivery {
    pub(crate) request: u64,
    /// `None`: rejected.
    pub(crate) reply: Option<(Vec<u8>, bool)>,
    pub(crate) memory: Option<SharedMemory>,
}

/// The port that a client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    Producer,
    Consumer,
}

/// A client of the service in this process.
#[derive(Debug)]
pub(crate) struct InProcessTransport<T> {
    client: u64,
    port: Port,
    next_request: u64,
    pending: Map<u64, T>,
    /// Calls that are not made yet, because a commit has to wait.
    waiting: VecDeque<Call<T>>,
}

impl<T> InProcessTransport<T> {
    pub(crate) fn connect(service: &mut dyn InProcessService, port: Port) -> Self {
        Self { client: service.connect(port), port, next_request: 1, pending: Map::new(), waiting: VecDeque::new() }
    }

    pub(crate) fn disconnect(&mut self, service: &mut dyn InProcessService) {
        while let Some(call) = self.waiting.pop_front() {
            self.invoke(service, call);
        }
        service.disconnect(self.client, self.port);
    }

    /// Makes calls of a producer in their order, as soon as the service takes them. Passes the tags
    /// of those that it does not have to `rejected`. Returns whether it has made any.
    pub(crate) fn send(
        &mut self,
        service: &mut dyn InProcessService,
        calls: Vec<Call<T>>,
        mut rejected: impl FnMut(T),
    ) -> bool {
        self.waiting.extend(calls);
        let mut any = false;
        while let Some(call) = self.waiting.pop_front() {
            if call.method == const { name_of::<CommitData>() } && service.must_wait() {
                self.waiting.push_front(call);
                break;
            }
            any = true;
            if let Some(tag) = self.invoke(service, call) {
                rejected(tag);
            }
        }
        any
    }

    /// Makes a call. Returns the tag if the service does not have the method.
    pub(crate) fn invoke(&mut self, service: &mut dyn InProcessService, call: Call<T>) -> Option<T> {
        let request = self.next_request;
        if !service.invoke(self.client, request, self.port, call.method, &call.args, call.fd) {
            return call.tag;
        }
        self.next_request += 1;
        if let Some(tag) = call.tag {
            self.pending.insert(request, tag);
        }
        None
    }

    /// Handles the replies that have arrived, and asks for more of those that arrive one by one.
    /// Returns whether there may be more.
    pub(crate) fn pump(
        &mut self,
        service: &mut dyn InProcessService,
        mut handle: impl FnMut(TransportEvent<'_, T>),
    ) -> bool {
        let mut any = false;
        while let Some(mut delivery) = service.next_reply(self.client) {
            any = true;
            let Some(mut tag) = self.pending.remove(&delivery.request) else { continue };
            let (success, body, has_more) = match &delivery.reply {
                Some((body, has_more)) => (true, &body[..], *has_more),
                None => (false, &[][..], false),
            };
            let reply = Reply { success, has_more, body, memory: &mut delivery.memory };
            handle(TransportEvent::Reply(&mut tag, reply));
            if has_more {
                self.pending.insert(delivery.request, tag);
            }
        }
        service.ready(self.client) || any
    }
}
