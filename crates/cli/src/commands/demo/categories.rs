//! What the demo can record.

esatto::categories! {
    /// The scanner's work.
    pub(super) static SCAN = "scan", "Walking directories";
    /// The cruncher's work.
    pub(super) static CRUNCH = "crunch", "Hashing and compressing files";
    /// The indexer's work.
    pub(super) static INDEX = "index", "Unpacking files and indexing their words";
    /// Calls that may wait for the disk.
    pub(super) static DISK = "disk", "System calls on files and directories";
    /// From process to process.
    pub(super) static PIPES = "pipes", "Files on their way from one process to the next";
    /// From thread to thread.
    pub(super) static QUEUES = "queues", "How many files wait for each stage";
}
