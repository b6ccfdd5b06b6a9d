//! The bugs that are planted in the service and in shared memory (`planted!` there), and the seeds that are known to find them.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planted {
    /// What `planted!` calls it.
    pub name: &'static str,
    /// What it does wrong.
    pub what: &'static str,
    /// The first seed that finds it.
    pub found_by: u64,
}

macro_rules! planted {
    ($($name:literal $seed:literal: $what:literal,)*) => {
        /// All of them.
        pub const ALL: &[Planted] = &[$(Planted { name: $name, what: $what, found_by: $seed },)*];
    };
}

planted! {
    "readmission-repeats" 10: "of a scraped chunk that comes again, what was read is returned again",
    "late-chunk-accepted" 1: "a chunk is stored although it was consumed before",
    "patch-next-chunk" 3: "a patch is applied to the chunk behind",
    "patch-releases-early" 6: "a chunk is released although more patches are to come",
    "rewrite-begins-again" 2: "a chunk that is replaced is read from its beginning",
    "wrap-too-early" 1: "a record that just fits is put to the front",
    "discard-reopens" 2: "a full DISCARD buffer takes the next chunk that fits",
    "forgotten-unmarked" 661079: "a sequence that was forgotten comes again without a mark",
    "gap-unmarked" 1: "a gap in chunk ids is not marked",
    "incomplete-left" 1: "a half written chunk is left behind when it is read",
    "incomplete-unmarked" 572: "a half written chunk that was overwritten is not missed",
    "orphan-returned" 1: "a continuation without its beginning is a packet",
    "unpatched-returned" 1: "a packet does not wait for its patches",
    "mark-repeated" 1: "a loss is marked on all packets that follow",
    "abort-unmarked" 2: "a packet that its writer gave up is not marked",
    "overwritten-counted-twice" 1: "overwritten chunks are counted twice",
    "event-lost" 2: "nobody hears that all data sources are started",
    "stop-acks-miscounted" 1: "a session ends with the first acknowledgement",
    "buffer-leak" 1: "the first of several buffers is not freed",
    "stop-timeout-forgotten" 1: "a session waits for ever for acknowledgements of its stop",
    "flush-answered-twice" 1: "a flush that succeeds is answered twice",
    "flush-unanswered" 1: "a flush that fails is not answered",
    "flush-id-off-by-one" 1: "an acknowledgement counts for the flushes before",
    "flush-unscraped" 2: "half written chunks are not copied when a flush ends",
    "periodic-flush-forgotten" 1: "the timer of periodic flushes is armed once",
    "foreign-buffer" 1: "a producer may write to a buffer of somebody else",
    "discarded-counted-twice" 1: "chunks for foreign buffers are counted twice",
    "sequence-id-shared" 1: "two writers get one sequence id",
    "has-more-lost" 3: "a read ends at the first pause",
    "file-error-untold" 14: "nobody hears that a file could not be written",
    "file-beyond-limit" 3: "a file grows beyond its limit",
    "command-lost" 2: "of commands that wait for memory the first is lost",
    "pid-lost" 1: "packets of other machines have no pid",
    "reserved-field-passed" 1: "some of the service's fields may come from producers",
    "long-scrape-skips" 10: "a scrape that takes several steps passes over a producer",
    "scrape-unfinished" 2: "the packet that is being written is scraped",
    "chunk-unfreed" 2: "a chunk that was taken stays taken",
    "clone-takes-away" 3: "what is copied into a clone is missing from its source",
    "clone-sequences-go-on" 18: "the first packets of a clone are not marked as the first",
    "clone-transfer-lost" 7: "what a clone that fails took out of its source does not go back",
    "clone-unanswered" 7: "a clone that is given up is not answered",
    "clone-uncleared" 6: "what nobody wants in a clone is not cleared before",
    "patch-wakes-nobody" 29: "a sequence that waits is not looked at again when its patches are there",
    "filter-forgotten" 4: "a filter is applied to the first batch only",
    "share-unbounded" 1: "a user gets all that is left of what users share",
    "share-kept" 1: "a share that was given back stays charged to its user",
    "sessions-unbounded" 1: "a user may have any number of sessions",
    "newcomers-kept-out" 1: "users keep out one without a session",
    "chunks-searched-one-by-one" 1: "a chunk is looked for among all of its sequence",
}

/// The bug of this name.
pub fn named(name: &str) -> Option<&'static Planted> {
    ALL.iter().find(|bug| bug.name == name)
}

/// Whether this program was built so that bugs can be woken; says so if not.
pub fn can_be_woken() -> bool {
    if !cfg!(esatto_planted) {
        eprintln!("the planted bugs need --cfg esatto_planted: cargo xtask sim");
    }
    cfg!(esatto_planted)
}
