//! Address of the service, if it has a name. Looking up a name may take seconds, in which the loop
//! must not stand still.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

use esatto_ipc::Address;

use crate::wakeup::Wakeup;

/// The address of a service, as a number once that is known.
#[derive(Debug)]
pub(crate) struct Resolver {
    named: Address,
    numeric: Option<Address>,
    /// A thread is looking it up.
    pending: Option<Receiver<Option<Address>>>,
    wake: Arc<Wakeup>,
}

impl Resolver {
    /// Looks the name up for the first time and waits for the result: no producer is served yet.
    pub(crate) fn new(named: Address, wake: Arc<Wakeup>) -> Self {
        let numeric = look_up(&named);
        Self { named, numeric, pending: None, wake }
    }

    /// Returns the address to connect to, if it is known.
    pub(crate) fn address(&self) -> Option<&Address> {
        self.numeric.as_ref()
    }

    /// Looks the name up again in a separate thread, which wakes the loop with the result.
    pub(crate) fn look_again(&mut self) {
        if self.named.is_numeric() || self.pending.is_some() {
            return;
        }
        let (sender, receiver) = channel();
        let (named, wake) = (self.named.clone(), Arc::clone(&self.wake));
        let body = move || {
            // When the relay ends, no receiver is left.
            let _ = sender.send(look_up(&named));
            wake.wake();
        };
        match thread::Builder::new().name("resolver".to_owned()).spawn(body) {
            Ok(_) => self.pending = Some(receiver),
            Err(e) => log::error!("cannot look up {}: {e}", self.named),
        }
    }

    /// Takes the result. If the name cannot be looked up now, the old number stays.
    pub(crate) fn take_result(&mut self) {
        let Some(pending) = &self.pending else { return };
        match pending.try_recv() {
            Ok(found) => {
                self.numeric = found.or_else(|| self.numeric.take());
                self.pending = None;
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => self.pending = None,
        }
    }
}

fn look_up(named: &Address) -> Option<Address> {
    named.to_numeric().map_err(|e| log::warn!("{e}")).ok()
}
