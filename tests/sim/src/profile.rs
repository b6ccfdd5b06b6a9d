//! The faults of a seed, and the number of each thing. Seeds differ widely (swarm testing), so that
//! rare combinations occur.

use crate::rng::Rng;

/// Nanoseconds of a millisecond.
pub const MS: u64 = 1_000_000;

/// The profile of one seed. Each percentage refers to the things that its field names.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Producers at the beginning.
    pub producers: usize,
    /// Consumers at the beginning.
    pub consumers: usize,
    /// Data source names in use.
    pub sources: u64,
    /// Producers that send garbage, and write into shared memory while it is read.
    pub hostile: u64,
    /// Hostile producers offer the names that honest sessions ask for.
    pub hostile_joins: bool,
    /// Producers without shared memory.
    pub emulated: u64,
    /// Producers that let the service copy uncommitted chunks.
    pub scraped: u64,
    /// Producers that bring their memory along.
    pub own_memory: u64,
    /// Producers that divide their pages.
    pub divided: u64,
    /// Longest delay of a piece of a stream.
    pub delay_ns: u64,
    /// Pieces that are cut in two.
    pub cut: u64,
    /// Steps of a producer, one in so many, in which it dies; 0 never.
    pub crash_one_in: u64,
    /// The same for consumers.
    pub consumer_crash_one_in: u64,
    /// The most that a timer fires late.
    pub late_ns: u64,
    /// Suspends, and jumps of the wall clock.
    pub clock_jumps: bool,
    /// Trace files that fail.
    pub file_faults: u64,
    /// Files that are written slowly.
    pub slow_files: u64,
    /// Allocations of memory that fail.
    pub no_memory: u64,
    /// Commits that leave in another order than they were written.
    pub shuffled: u64,
    /// Commits that the producer forgets, one in so many; 0 never.
    pub lost_commit_one_in: u64,
    /// Packets larger than a chunk.
    pub large: u64,
    /// Large packets whose length is patched later.
    pub patched: u64,
    /// Patches that never come.
    pub lost_patches: u64,
    /// Packets that their writer gives up.
    pub aborted: u64,
    /// Packets that stay half written for a while.
    pub half_written: u64,
    /// Writers whose chunk ids begin just below the wrap.
    pub wrapping_ids: u64,
    /// Acknowledgements that never come.
    pub forgotten_acks: u64,
    /// Longest packet that fits into a chunk.
    pub packet_bytes: u64,
    /// Buffers are at most this large.
    pub buffer_kb: u64,
    /// Buffers that are filled once.
    pub discard: u64,
    /// Sessions that stream into a file.
    pub files: u64,
    /// Sessions with triggers.
    pub triggers: u64,
    /// Consumers leave their session and come back.
    pub detaches: bool,
    /// Sessions are cloned.
    pub clones: bool,
    /// Consumers that wait before they take more.
    pub slow_readers: u64,
    /// Writers that are not registered.
    pub unregistered: u64,
    /// Longest pause of a producer between two steps.
    pub pause_ns: u64,
    /// True if writers mark their first packet.
    pub tells_first: u64,
    /// Sessions that are compressed.
    pub compressed: u64,
    /// Sessions that want the service to run sooner than others.
    pub boosted: u64,
    /// Changes of priority that are not allowed.
    pub priority_faults: u64,
    /// Producers that choose the worst order.
    pub worst: u64,
    /// Relays at a time.
    pub relays: usize,
    /// Hostile consumers.
    pub hostile_consumers: u64,
    /// Sessions with a filter.
    pub filtered: u64,
}

impl Profile {
    /// Draws a profile.
    pub fn draw(rng: &mut Rng) -> Self {
        // Drawn from a separate generator, so that a seed without them does the same as before.
        let mut apart = Rng::new(rng.clone().bits());
        let mut rarely = |percent: u64, values: &[u64]| if apart.percent(percent) { apart.pick(values) } else { 0 };
        let compressed = rarely(40, &[20, 100]);
        let boosted = rarely(40, &[10, 50]);
        let priority_faults = rarely(50, &[10, 50, 100]);
        let worst = rarely(25, &[5, 20, 40]);
        let relays = rarely(20, &[1, 3, 20]) as usize;
        let hostile_consumers = rarely(20, &[10, 40, 80]);
        let filtered = rarely(30, &[20, 100]);
        let mut on = |percent: u64, values: &[u64]| if rng.percent(percent) { rng.pick(values) } else { 0 };
        let hostile = on(50, &[5, 10, 30, 50]);
        let emulated = on(40, &[5, 30, 100]);
        let scraped = on(70, &[10, 50, 100]);
        let own_memory = on(40, &[10, 50]);
        let divided = on(40, &[10, 100]);
        let cut = on(60, &[1, 10, 50]);
        let crash_one_in = on(60, &[2000, 400, 100]);
        let consumer_crash_one_in = on(40, &[2000, 300]);
        let file_faults = on(40, &[10, 50]);
        let slow_files = on(50, &[50, 100]);
        let no_memory = on(20, &[1, 20]);
        let shuffled = on(40, &[5, 50, 100]);
        let lost_commit_one_in = on(30, &[1000, 100, 20]);
        let large = on(60, &[2, 10, 40]);
        let patched = on(70, &[20, 80, 100]);
        let lost_patches = on(30, &[1, 20]);
        let aborted = on(40, &[1, 5]);
        let half_written = on(50, &[5, 30]);
        let wrapping_ids = on(40, &[20, 100]);
        let forgotten_acks = on(40, &[2, 20]);
        let discard = on(60, &[20, 50, 100]);
        let files = on(50, &[20, 60]);
        let triggers = on(40, &[20, 50]);
        let slow_readers = on(50, &[20, 100]);
        let unregistered = on(40, &[10, 100]);
        let tells_first = on(70, &[50, 100]);
        let producers = match rng.below(10) {
            0 => rng.between(100, 300),
            1..=3 => rng.between(30, 100),
            _ => rng.between(10, 30),
        };
        Self {
            producers: producers as usize,
            consumers: rng.between(3, 12) as usize,
            sources: rng.between(2, 6),
            hostile,
            hostile_joins: rng.percent(50),
            emulated,
            scraped,
            own_memory,
            divided,
            delay_ns: rng.pick(&[0, MS / 10, 3 * MS, 40 * MS]),
            cut,
            crash_one_in,
            consumer_crash_one_in,
            late_ns: rng.pick(&[0, MS, 30 * MS, 2000 * MS]),
            clock_jumps: rng.percent(30),
            file_faults,
            slow_files,
            no_memory,
            shuffled,
            lost_commit_one_in,
            large,
            patched,
            lost_patches,
            aborted,
            half_written,
            wrapping_ids,
            forgotten_acks,
            packet_bytes: rng.pick(&[20, 60, 200, 900]),
            buffer_kb: rng.pick(&[4, 16, 64, 512]),
            discard,
            files,
            triggers,
            detaches: rng.percent(40),
            clones: rng.percent(50),
            slow_readers,
            unregistered,
            pause_ns: rng.pick(&[MS, 10 * MS, 100 * MS]),
            tells_first,
            compressed,
            boosted,
            priority_faults,
            worst,
            relays,
            hostile_consumers,
            filtered,
        }
    }
}
