//! Categories of the demo.

esatto::categories! {
    /// Work of the scanner.
    pub(super) static SCAN = "scan", "Walking directories";
    /// Work of the cruncher.
    pub(super) static CRUNCH = "crunch", "Hashing and compressing files";
    /// Work of the indexer.
    pub(super) static INDEX = "index", "Unpacking files and indexing their words";
    /// Calls that may wait for the disk.
    pub(super) static DISK = "disk", "System calls on files and directories";
    /// Transfer between processes.
    pub(super) static PIPES = "pipes", "Files on their way from one process to the next";
    /// Transfer between threads.
    pub(super) static QUEUES = "queues", "How many files wait for each stage";
}
