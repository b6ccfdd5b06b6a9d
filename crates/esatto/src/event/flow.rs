//! Flows: arrows between slices.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::hash::fnv;
use crate::track_uuid;

/// Connects the slices and instants that carry it, in the order of their times
/// (`docs/spec/track-event.md` §15).
///
/// ```
/// # esatto::categories! { static NET = "net"; }
/// use esatto::Flow;
///
/// let flow = Flow::process(42);
/// esatto::instant!(NET, "sent", |event| event.flow(flow));
/// esatto::instant!(NET, "received", |event| event.end_flow(flow));
/// ```
#[doc(alias = "arrow", alias = "link", alias = "follows_from", alias = "causality")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow(u64);

impl Flow {
    /// Makes a flow with the same meaning in every process, such as a request id that is passed
    /// along.
    #[must_use]
    pub const fn global(id: u64) -> Self {
        Self(id)
    }

    /// Makes a flow of this process. Equal ids of other processes are other flows.
    #[must_use]
    pub fn process(id: u64) -> Self {
        Self(id ^ track_uuid::process_uuid())
    }

    /// Makes a flow of this process from the address of a value.
    #[must_use]
    pub fn pointer<T: ?Sized>(value: *const T) -> Self {
        Self::process(value.cast::<u8>().addr() as u64)
    }

    /// Makes a flow with the same meaning in every process, in a separate name space: equal ids of
    /// other scopes are other flows.
    ///
    /// ```
    /// # use esatto::Flow;
    /// assert_eq!(Flow::scoped("ipc", 5).id(), 0x2bc2_1219_2bf1_cee8);
    /// ```
    #[must_use]
    pub const fn scoped(scope: &str, id: u64) -> Self {
        Self(id ^ fnv(scope.as_bytes()))
    }

    /// Makes a flow that differs from all others of this process: one for each request or message.
    #[must_use]
    pub fn unique() -> Self {
        /// Apart from small numbers and addresses.
        const FIRST: u64 = 0xf10e_0000_0000_0000;
        /// Numbers that a thread takes at once, so that threads do not compete for the counter.
        const PER_THREAD: u64 = 1024;
        static NEXT: AtomicU64 = AtomicU64::new(FIRST);
        thread_local! {
            /// The next number of this thread. A multiple of `PER_THREAD` means that the thread has
            /// none.
            static OWN: Cell<u64> = const { Cell::new(0) };
        }
        let take = || NEXT.fetch_add(PER_THREAD, Ordering::Relaxed);
        let number = OWN.try_with(|own| {
            let number = if own.get() % PER_THREAD == 0 { take() } else { own.get() };
            own.set(number + 1);
            number
        });
        Self::process(number.unwrap_or_else(|_| take()))
    }

    /// Returns the id as it is written, so that another process can pass it to
    /// [`global`](Self::global).
    #[must_use]
    pub const fn id(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_flows_differ_across_threads() {
        let flows = || (0..3000).map(|_| Flow::unique().id()).collect::<Vec<_>>();
        let other = std::thread::spawn(flows);
        let mut all = flows();
        all.extend(other.join().expect("does not panic"));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 6000);
    }
}
