//! Causes of losses, in the words that users see (`docs/spec/trace-buffer.md` §12).

/// Unread data was overwritten.
pub(crate) const OVERWRITE: &str = "overwrite";

/// The program found the shared memory full.
pub(crate) const SMB_FULL: &str = "smb_full";

/// Causes of a loss, by their bits in `previous_packet_dropped`.
const LOSS_CAUSES: [(u32, &str); 8] = [
    (2, "read_gap"),
    (4, "chunk_corrupted"),
    (8, "orphan_continuation"),
    (16, "reassembly_gap"),
    (32, "broken_chain"),
    (64, OVERWRITE),
    (128, "writer_abort"),
    (256, SMB_FULL),
];

/// Returns the causes of a loss that `previous_packet_dropped` marks.
pub(crate) fn of(dropped: u32) -> impl Iterator<Item = &'static str> {
    let named = LOSS_CAUSES.iter().filter(move |(bit, _)| dropped & bit != 0).map(|(_, name)| *name);
    let unknown = (dropped & !1 == 0).then_some("unspecified");
    named.chain(unknown)
}
