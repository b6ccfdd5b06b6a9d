//! [`Dispatch`]: what a connection calls. Generated code implements it.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use esatto_protozero::Owned;
use esatto_protozero::service::{Kind, Method, Rpc, Service, method_of};

use super::context::Context;
use super::open_call::OpenCall;
use super::replies::Replies;
use super::tasks::Tasks;
use crate::foreign_fd::ForeignFd;
use crate::peer::Peer;
use crate::scratch::Scratch;
use crate::status::Status;

/// Services of a socket. A pair of them is also one.
pub trait Dispatch {
    /// Returns the service at a position; `None` after the last.
    fn service(&self, index: usize) -> Option<&'static Service>;

    /// Runs a call of the service at position [`Invocation::service`].
    fn dispatch(&mut self, call: Invocation<'_>);
}

/// No service.
impl Dispatch for () {
    fn service(&self, _: usize) -> Option<&'static Service> {
        None
    }

    fn dispatch(&mut self, _: Invocation<'_>) {}
}

/// First the services of `A`, then those of `B`.
impl<A: Dispatch, B: Dispatch> Dispatch for (A, B) {
    fn service(&self, index: usize) -> Option<&'static Service> {
        self.0.service(index).or_else(|| self.1.service(index - number_of_services(&self.0)))
    }

    fn dispatch(&mut self, mut call: Invocation<'_>) {
        let first = number_of_services(&self.0);
        match call.service.checked_sub(first) {
            Some(index) => {
                call.service = index;
                self.1.dispatch(call);
            }
            None => self.0.dispatch(call),
        }
    }
}

impl<D: Dispatch + ?Sized> Dispatch for &mut D {
    fn service(&self, index: usize) -> Option<&'static Service> {
        (**self).service(index)
    }

    fn dispatch(&mut self, call: Invocation<'_>) {
        (**self).dispatch(call);
    }
}

fn number_of_services(services: &impl Dispatch) -> usize {
    (0..).take_while(|&index| services.service(index).is_some()).count()
}

/// Call that arrived, before its type is known.
///
/// Dropping it fails the call.
pub struct Invocation<'a> {
    pub(super) service: usize,
    pub(super) method_id: u32,
    pub(super) call: OpenCall,
    pub(super) args: &'a [u8],
    pub(super) deadline: Option<Instant>,
    pub(super) peer: &'a Arc<Peer>,
    pub(super) fd: &'a mut Option<ForeignFd>,
    pub(super) tasks: &'a mut Tasks,
}

impl Invocation<'_> {
    /// Returns the position of the service.
    #[must_use]
    pub fn service(&self) -> usize {
        self.service
    }

    /// Returns the id of the method, from 1.
    #[must_use]
    pub fn method_id(&self) -> u32 {
        self.method_id
    }

    /// Returns the method.
    #[must_use]
    pub fn method(&self) -> &'static Method {
        self.call.method
    }

    /// Runs an `async fn` that answers a unary call. Generated code calls it.
    pub fn unary<M: Rpc, F>(self, run: impl FnOnce(Context, M::Request) -> F)
    where
        F: Future<Output = Result<M::Reply, Status>> + Send + 'static,
    {
        const { assert!(matches!(method_of::<M>().kind, Kind::Unary), "a method with one reply") };
        let Some((context, request, call, tasks)) = self.open::<M>() else { return };
        let run = run(context, request);
        tasks.spawn(call.key.serial, async move {
            match run.await {
                Ok(reply) => call.answer(&Scratch::encode(&reply), None),
                Err(status) => call.fail(&status),
            }
        });
    }

    /// Runs an `async fn` that answers a streaming call. Generated code calls it.
    pub fn stream<M: Rpc, F>(self, run: impl FnOnce(Context, M::Request, Replies<M::Reply>) -> F)
    where
        F: Future<Output = Result<(), Status>> + Send + 'static,
    {
        const { assert!(matches!(method_of::<M>().kind, Kind::ServerStream), "a method with a stream of replies") };
        let Some((context, request, end, tasks)) = self.open::<M>() else { return };
        let serial = end.key.serial;
        let call = end.without_duty();
        let run = run(context, request, Replies::new(call));
        tasks.spawn(serial, async move {
            match run.await {
                Ok(()) => end.finish(),
                Err(status) => end.fail(&status),
            }
        });
    }

    /// Runs an `async fn` of a one-way call. Generated code calls it.
    pub fn one_way<M: Rpc, F>(self, run: impl FnOnce(Context, M::Request) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        const { assert!(matches!(method_of::<M>().kind, Kind::OneWay), "a method without reply") };
        let Some((context, request, call, tasks)) = self.open::<M>() else { return };
        let run = run(context, request);
        tasks.spawn(call.key.serial, async move {
            run.await;
            drop(call);
        });
    }
}

impl<'a> Invocation<'a> {
    /// Decodes the request. If that is not possible, the call fails.
    fn open<M: Rpc>(self) -> Option<(Context, M::Request, OpenCall, &'a mut Tasks)> {
        match M::Request::decode(self.args) {
            Ok(request) => {
                let fd = self.fd.take().map(|fd| Arc::new(Mutex::new(Some(fd))));
                self.tasks.lent_fd.clone_from(&fd);
                let context = Context::new(&self.call, self.peer, self.deadline, fd);
                Some((context, request, self.call, self.tasks))
            }
            Err(_) => {
                self.call.fail_malformed();
                None
            }
        }
    }
}

impl std::fmt::Debug for Invocation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Invocation")
            .field("method", &self.call.method.full_name)
            .field("key", &self.call.key)
            .finish_non_exhaustive()
    }
}
