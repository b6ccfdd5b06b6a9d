//! Seeds that found a bug, and the bug. Each is run again in every test run
//! (`cargo xtask sim --found`).
//!
//! A seed does the same as before only while the simulation draws the same numbers. So draw new
//! values from a separate generator (see [`Profile::draw`](crate::profile::Profile::draw)).

/// A seed, and the bug that it found.
pub const SEEDS: &[(u64, &str)] = &[
    (200033, "simulator: a session that starts and stops in one step is scraped of producers that were set up in it"),
    (200249, "service: a consumer that attached to a clone while its file was copied waited in vain for its end"),
    (200431, "simulator: a clone may be detached before the call that asked for it is answered"),
    (200478, "the same as 200431"),
    (200490, "the same as 200249, ended by FreeBuffers"),
    (200826, "the same as 200249, without an end"),
    (201010, "the same as 200431"),
    (201358, "service: the error of a trace file was told once, and not to a consumer that attached later"),
    (201420, "the same as 200431"),
    (202025, "the same as 200431"),
    (
        401329,
        "service: of two clones under way the first was given up, and what it had moved came behind what is newer",
    ),
    (401372, "simulator: a read may tell of 1024 triggers of a producer with a long name"),
    (501368, "simulator: its own copies of scraped chunks were counted as the service's"),
    (548048, "simulator: that all data sources are started may be told later, when another one has come"),
    (549476, "simulator: a chunk of few bytes may have more fragments than bytes were allowed for"),
    (930726, "service: the table of buffers stayed as large as many small buffers had made it"),
    (401582, "simulator: a chunk takes the place of many that were written in descending order"),
    (622715, "simulator: a producer that comes and goes while a session is scraped in turns may be scraped"),
    (653777, "service: an exclusive session that was opening did not count for a stronger one of the same user"),
    (661079, "service: a loss of a sequence that was forgotten was not marked when it came again"),
];

/// Seeds of the RPC library's world, and the bugs that they found.
pub const RPC_SEEDS: &[(u64, &str)] = &[
    (1, "ipc: a service was told a time rounded down, and was out of time before its client"),
    (1, "ipc: a call that failed before it was sent left its slice open"),
    (3, "ipc: a driver woke itself again and again while the socket took nothing"),
    (32, "ipc: the end of a connection did not wake handlers that waited for room"),
    (239, "ipc: hooks were told of the end of a call while its last reply was taken"),
    (292, "ipc: the callback of a stream was called again after a reply that cannot be decoded"),
];
