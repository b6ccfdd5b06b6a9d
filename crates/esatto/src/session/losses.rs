//! Tells the user if events are missing in a session inside this process.

use esatto_protozero::Fields;
use esatto_schema::trace_stats::BufferStats;
use esatto_schema::{GAPS_BETWEEN_PACKETS_FIELD, TraceStats};

use crate::diagnostics;

/// Reports the losses of a session that has stopped.
///
/// Chunks that were overwritten are no loss: most buffers are rings.
pub(super) fn explain(stats: &TraceStats) {
    let gaps = stats.buffer_stats.iter().map(gaps).sum();
    if let Some(line) = in_words(gaps) {
        diagnostics::say_once(line);
    }
}

/// Returns the places where threads found shared memory full.
pub(crate) fn gaps(buffer: &BufferStats) -> u64 {
    our_count(buffer, GAPS_BETWEEN_PACKETS_FIELD) + buffer.trace_writer_packet_loss.unwrap_or(0)
}

/// Returns a count that Perfetto does not have.
pub(crate) fn our_count(buffer: &BufferStats, id: u32) -> u64 {
    let mut unknown = Fields::new(&buffer.unknown_fields);
    unknown.find(|field| field.id == id).map_or(0, |field| field.as_u64())
}

fn in_words(gaps: u64) -> Option<String> {
    let gaps = match gaps {
        0 => return None,
        1 => "1 gap".to_owned(),
        gaps => format!("{gaps} gaps"),
    };
    Some(format!(
        "a session inside this process lacks events: {gaps}, where threads traced faster than the service read; \
         `SessionConfig::stall` lets them wait, `Builder::shared_memory` gives more memory; see \
         docs/concepts/losses.md"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_counted_in_words() {
        assert_eq!(in_words(0), None);
        assert!(in_words(1).is_some_and(|line| line.contains("lacks events: 1 gap, where")));
        assert!(in_words(2).is_some_and(|line| line.contains("lacks events: 2 gaps, where")));
    }
}
