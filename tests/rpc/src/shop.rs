//! The service that the programs of the tests offer and call: with a category, and without.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use esatto::{Category, TraceConfig};
use esatto_ipc::server::{Incoming, Replies, Reply};
use esatto_ipc::{Code, Status};

/// The category of the traced calls.
pub const CATEGORY: &str = "bindings";

/// Message of all requests and replies. `duration_ms` is a number for the method.
pub type Item = TraceConfig;

/// Returns a message with a number.
#[must_use]
pub fn item(number: u32) -> Item {
    Item { duration_ms: Some(number), ..Item::default() }
}

/// Returns a message whose size in bytes shows who sent it.
#[must_use]
pub fn item_of_size(name: &str) -> Item {
    Item { unique_session_name: Some(name.into()), ..Item::default() }
}

fn number(item: &Item) -> usize {
    item.duration_ms.unwrap_or_default() as usize
}

/// State of a [`Shelf`].
#[derive(Debug, Default)]
struct State {
    held: VecDeque<Reply<Item>>,
    streams: usize,
    has_signal: bool,
    is_over: bool,
}

/// Implements the service. Clones are the same shelf.
#[derive(Clone, Debug, Default)]
pub struct Shelf(Arc<(Mutex<State>, Condvar)>);

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.0.1.notify_all();
    }

    fn wait_until(&self, is_so: impl Fn(&State) -> bool) {
        let result = self.0.1.wait_while(self.lock(), |state| !is_so(state));
        drop(result.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until somebody calls `quit`.
    pub fn wait_for_end(&self) {
        self.wait_until(|state| state.is_over);
    }

    /// Waits until so many calls of `hold` have arrived that were not released.
    pub fn wait_for_held(&self, count: usize) {
        self.wait_until(|state| state.held.len() >= count);
    }

    /// Answers the held calls on a thread of their own.
    ///
    /// # Panics
    ///
    /// The thread does not start.
    pub fn release(&self) {
        let held = std::mem::take(&mut self.lock().held);
        let answer = move || held.into_iter().for_each(|reply| reply.send(&item(2)));
        on_worker(answer).join().expect("ends");
    }

    /// Sends `count` replies from a thread of their own, the last of them with the end.
    fn send(&self, mut replies: Replies<Item>, count: usize, ends_with_message: bool) {
        let shelf = self.clone();
        on_worker(move || {
            for n in 1..=count {
                let message = item(u32::try_from(n).unwrap_or(u32::MAX));
                if n == count && ends_with_message {
                    replies.finish_with(&message);
                    return shelf.change(|state| state.streams += 1);
                }
                replies.send_blocking(&message).expect("the client waits");
            }
            replies.finish();
            shelf.change(|state| state.streams += 1);
        });
    }
}

fn on_worker(work: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::Builder::new().name("worker".to_owned()).spawn(work).expect("a thread starts")
}

/// Makes the service `Shop` with a category, and implements it by [`Shelf`]. The methods from
/// `await_held` on control the test, and are never traced.
macro_rules! shop {
    ($(#[$doc:meta])* $name:ident, $category:tt) => {
        $(#[$doc])*
        pub mod $name {
            use esatto_ipc::Status;
            use esatto_ipc::server::{Context, Replies};

            use super::Item;

            /// The service.
            #[esatto::trace_rpc(category = $category)]
            pub trait Shop {
                /// Returns the request.
                async fn get(&self, context: &Context, request: Item) -> Result<Item, Status>;
                /// Fails.
                async fn refuse(&self, context: &Context, request: Item) -> Result<Item, Status>;
                /// Is answered by `release`.
                async fn hold(&self, context: &Context, request: Item) -> Result<Item, Status>;
                /// Returns as many replies as asked for.
                async fn watch(&self, context: &Context, request: Item, replies: Replies<Item>)
                -> Result<(), Status>;
                /// As `watch`, with an end that is no message.
                async fn list(&self, context: &Context, request: Item, replies: Replies<Item>)
                -> Result<(), Status>;
                /// Has no reply.
                async fn note(&self, context: &Context, request: Item);

                /// Waits for so many held calls.
                #[rpc(category = "")]
                async fn await_held(&self, context: &Context, request: Item) -> Result<Item, Status>;
                /// Waits until so many streams were sent to their end.
                #[rpc(category = "")]
                async fn await_streams(&self, context: &Context, request: Item) -> Result<Item, Status>;
                /// Signals something to those that wait for it.
                #[rpc(category = "")]
                async fn signal(&self, context: &Context, request: Item);
                /// Waits for a signal.
                #[rpc(category = "")]
                async fn await_signal(&self, context: &Context, request: Item) -> Result<Item, Status>;
                /// Waits until a session records the server's calls.
                #[rpc(category = "")]
                async fn await_recording(&self, context: &Context, request: Item) -> Result<Item, Status>;
                /// Answers the held calls on another thread, and then this call.
                #[rpc(category = "")]
                async fn release(&self, context: &Context, request: Item) -> Result<Item, Status>;
                /// Ends the server.
                #[rpc(category = "")]
                async fn quit(&self, context: &Context, request: Item);
            }

            impl shop::Handler for super::Shelf {
                fn get(&mut self, call: super::Incoming<'_, shop::method::Get>) {
                    call.answer(Ok);
                }

                fn refuse(&mut self, call: super::Incoming<'_, shop::method::Refuse>) {
                    call.fail(&super::sold_out());
                }

                fn hold(&mut self, call: super::Incoming<'_, shop::method::Hold>) {
                    self.change(|state| state.held.push_back(call.into_reply()));
                }

                fn watch(&mut self, call: super::Incoming<'_, shop::method::Watch>) {
                    let count = call.request().map_or(0, |request| super::number(&request));
                    self.send(call.into_replies(), count, true);
                }

                fn list(&mut self, call: super::Incoming<'_, shop::method::List>) {
                    let count = call.request().map_or(0, |request| super::number(&request));
                    self.send(call.into_replies(), count, false);
                }

                fn note(&mut self, _: super::Incoming<'_, shop::method::Note>) {}

                fn await_held(&mut self, call: super::Incoming<'_, shop::method::AwaitHeld>) {
                    call.answer(|request| {
                        self.wait_for_held(super::number(&request));
                        Ok(request)
                    });
                }

                fn await_streams(&mut self, call: super::Incoming<'_, shop::method::AwaitStreams>) {
                    call.answer(|request| {
                        self.wait_until(|state| state.streams >= super::number(&request));
                        Ok(request)
                    });
                }

                fn signal(&mut self, _: super::Incoming<'_, shop::method::Signal>) {
                    self.change(|state| state.has_signal = true);
                }

                fn await_signal(&mut self, call: super::Incoming<'_, shop::method::AwaitSignal>) {
                    call.answer(|request| {
                        self.wait_until(|state| state.has_signal);
                        Ok(request)
                    });
                }

                fn await_recording(&mut self, call: super::Incoming<'_, shop::method::AwaitRecording>) {
                    call.answer(|request| {
                        super::wait_until_recorded();
                        Ok(request)
                    });
                }

                fn release(&mut self, call: super::Incoming<'_, shop::method::Release>) {
                    Self::release(self);
                    call.answer(Ok);
                }

                fn quit(&mut self, _: super::Incoming<'_, shop::method::Quit>) {
                    self.change(|state| state.is_over = true);
                }
            }
        }
    };
}

fn wait_until_recorded() {
    let category = Category::dynamic_with_tags(CATEGORY, &["rpc"]);
    esatto_tests::wait_until("calls are recorded", || category.is_enabled().then_some(()));
}

fn sold_out() -> Status {
    Status::new(Code::NotFound, "sold out")
}

shop! {
    /// With the category.
    traced, "bindings"
}
shop! {
    /// The same service without a category.
    plain, ""
}

/// A service that no server has.
#[esatto::trace_rpc(category = "bindings")]
pub trait Cellar {
    /// Always fails.
    async fn open(&self, context: &esatto_ipc::server::Context, request: Item) -> Result<Item, Status>;
    /// Is never received.
    async fn knock(&self, context: &esatto_ipc::server::Context, request: Item);
}
