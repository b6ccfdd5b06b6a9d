//! Tells the user if events are missing in the file that a program wrote itself.

use std::path::Path;
use std::time::Duration;

use esatto_protozero::Fields;
use esatto_schema::GAPS_BETWEEN_PACKETS_FIELD;
use esatto_schema::trace_stats::BufferStats;

use crate::diagnostics;
use crate::session::Session;

/// The session is over, so its service has nothing else to do.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reports losses of a session that has stopped, after its file is complete.
pub(super) fn explain(path: &Path, session: &Session) {
    let Ok(stats) = session.stats().wait_timeout(PATIENCE) else { return };
    let sum = |count: fn(&BufferStats) -> u64| stats.buffer_stats.iter().map(count).sum();
    if let Some(lines) = in_words(sum(gaps), sum(overwritten)) {
        diagnostics::say_once(format!("{} {lines}", path.display()));
    }
}

/// Returns the places where threads waited in vain for shared memory.
fn gaps(buffer: &BufferStats) -> u64 {
    let mut unknown = Fields::new(&buffer.unknown_fields);
    let between = unknown.find(|field| field.id == GAPS_BETWEEN_PACKETS_FIELD).map_or(0, |field| field.as_u64());
    between + buffer.trace_writer_packet_loss.unwrap_or(0)
}

/// Returns the chunks that were overwritten before they were written into the file.
fn overwritten(buffer: &BufferStats) -> u64 {
    buffer.chunks_overwritten.unwrap_or(0)
}

fn in_words(gaps: u64, overwritten: u64) -> Option<String> {
    let of = |number: u64, what: &str| {
        (number > 0).then(|| format!("{number} {what}{}", if number == 1 { "" } else { "s" }))
    };
    let gaps = of(gaps, "gap").map(|gaps| format!("{gaps}, where the file did not take the data for too long"));
    let chunks = of(overwritten, "chunk").map(|chunks| {
        format!(
            "{chunks} of events overwritten: unfinished events did not fit into the buffer (ESATTO_TRACE_BUFFER_KB)"
        )
    });
    let losses: Vec<String> = [gaps, chunks].into_iter().flatten().collect();
    (!losses.is_empty()).then(|| format!("lacks events: {}; see docs/concepts/losses.md", losses.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_counted_in_words() {
        assert_eq!(in_words(0, 0), None);
        let text = in_words(1, 2).expect("losses");
        assert!(text.starts_with("lacks events: 1 gap, where"), "{text}");
        assert!(text.contains("; 2 chunks of events overwritten: "), "{text}");
    }
}
