//! Counts of the daemon, which other threads can read.

use core::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts since the start; each one only grows.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// The counters; only the event loop writes them.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        impl Counters {
            pub(crate) fn snapshot(&self) -> Stats {
                Stats { $($name: self.$name.0.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Connections accepted on producer sockets.
    producers_accepted,
    /// Connections accepted on the consumer socket.
    consumers_accepted,
    /// Connections closed because there were too many already.
    connections_refused,
    /// Connections closed because the peer broke the protocol.
    protocol_errors,
    /// Connections closed because the peer did not read the frames for it.
    stalled_peers,
    /// Calls whose arguments do not parse, or of methods that do not exist.
    bad_calls,
    /// Shared memory offered by producers and not adopted.
    memory_refused,
    /// Connections closed because the pages of their shared memory went away.
    memory_lost,
    /// Frames received.
    frames_received,
    /// Bytes received, frame headers included.
    bytes_received,
    /// Bytes sent, frame headers included.
    bytes_sent,
    /// Bytes written into trace files for sessions that stream.
    file_bytes_written,
    /// Rounds of the event loop. There are few while nothing happens.
    rounds,
}

/// One of the counters.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        // Relaxed: the count publishes no other data.
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn add_one(&self) {
        self.add(1);
    }
}
