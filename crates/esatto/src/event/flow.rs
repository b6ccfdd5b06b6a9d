//! Flows: arrows between slices.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::hash::fnv;
use crate::os::fork::{self, Generation};
use crate::os::random;
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

    /// Makes a flow that differs from all others of all processes: one for each request that leaves
    /// the process. Send its [id](Self::id) along.
    ///
    /// Takes a few nanoseconds. The ids of a thread derive from a number of the system's random
    /// source, which the child of a fork asks again. They are not secrets: an id shows the next one
    /// of the same thread.
    #[must_use]
    pub fn random() -> Self {
        thread_local! {
            static OWN: Cell<RandomIds> = const { Cell::new(RandomIds::UNSEEDED) };
        }
        let next = OWN.try_with(|own| {
            let mut ids = own.get();
            let flow = ids.next();
            own.set(ids);
            flow
        });
        next.unwrap_or_else(|_| Self(random().max(1)))
    }

    /// Makes the flow of message `k` of a connection or a call that both of its ends know as
    /// `seed`. Has the same meaning in every process (`docs/spec/ipc-tracing.md` §5).
    ///
    /// Different `k` of one seed are different flows.
    ///
    /// ```
    /// # use esatto::Flow;
    /// assert_eq!(Flow::derived(0x0123_4567_89ab_cdef, 2).id(), 0xd573_529b_34a1_d093);
    /// ```
    #[must_use]
    pub const fn derived(seed: u64, k: u64) -> Self {
        match mix(seed, k) {
            0 => Self(1),
            id => Self(id),
        }
    }

    /// Returns the id as it is written, so that another process can pass it to
    /// [`global`](Self::global).
    #[must_use]
    pub const fn id(self) -> u64 {
        self.0
    }
}

/// The output function of SplitMix64. For one seed it maps each `k` to another number.
const fn mix(seed: u64, k: u64) -> u64 {
    let z = seed.wrapping_add(k.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Random ids of one thread.
#[derive(Clone, Copy)]
struct RandomIds {
    seed: u64,
    /// The number of the next id. 0: there is no seed.
    next: u64,
    process: Generation,
}

impl RandomIds {
    const UNSEEDED: Self = Self { seed: 0, next: 0, process: Generation::FIRST };

    fn next(&mut self) -> Flow {
        // A child has a copy of the seed. Before forks are noticed, each id gets its own.
        if self.next == 0 || self.process.is_past() || !fork::is_watched() {
            self.seed_again();
        }
        let flow = Flow::derived(self.seed, self.next);
        self.next = self.next.wrapping_add(1);
        flow
    }

    #[cold]
    fn seed_again(&mut self) {
        *self = Self { seed: random(), next: 1, process: Generation::current() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_flows_are_those_of_the_spec() {
        const SEED: u64 = 0x0123_4567_89ab_cdef;
        let request = Flow::derived(SEED, 2).id();
        assert_eq!(request, 0xd573_529b_34a1_d093);
        assert_eq!(Flow::derived(SEED, 3).id(), 0x2f90_b72e_996d_ccbe);
        assert_eq!(Flow::derived(SEED, 4).id(), 0xa2d4_1933_4c46_67ec);
        let replies = [1, 2].map(|reply| Flow::derived(request, reply).id());
        assert_eq!(replies, [0x77a6_486d_ff4e_0f94, 0xd27a_6a41_6ad6_b4e8]);
        assert_eq!(Flow::derived(1, 2).id(), 0xbeeb_8da1_658e_ec67);
    }

    #[test]
    fn no_derived_flow_is_zero() {
        assert_eq!(mix(0, 0), 0);
        assert_eq!(Flow::derived(0, 0).id(), 1);
    }

    #[test]
    fn random_flows_differ_across_threads() {
        let flows = || (0..3000).map(|_| Flow::random().id()).collect::<Vec<_>>();
        let other = std::thread::spawn(flows);
        let mut all = flows();
        all.extend(other.join().expect("does not panic"));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 6000);
    }

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
