//! Tells the user if events are missing in the file that a program wrote itself.

use std::path::Path;
use std::time::Duration;

use esatto_schema::PACKETS_AFTER_LOSS_FIELD;
use esatto_schema::trace_stats::BufferStats;

use crate::diagnostics;
use crate::session::Session;
use crate::session::losses::{gaps, our_count};

/// The session is over, so its service has nothing else to do.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reports losses of a session that has stopped, after its file is complete.
pub(super) fn explain(path: &Path, session: &Session) {
    let Ok(stats) = session.stats().wait_timeout(PATIENCE) else { return };
    let sum = |count: fn(&BufferStats) -> u64| stats.buffer_stats.iter().map(count).sum();
    if let Some(lines) = in_words(sum(gaps), sum(overwritten), sum(after_loss)) {
        diagnostics::say_once(format!("{} {lines}", path.display()));
    }
}

/// Returns the packets that were read after a loss of any kind.
fn after_loss(buffer: &BufferStats) -> u64 {
    our_count(buffer, PACKETS_AFTER_LOSS_FIELD)
}

/// Returns the chunks that were overwritten before they were written into the file.
fn overwritten(buffer: &BufferStats) -> u64 {
    buffer.chunks_overwritten.unwrap_or(0)
}

fn in_words(gaps: u64, overwritten: u64, after_loss: u64) -> Option<String> {
    let of = |number: u64, what: &str| {
        (number > 0).then(|| format!("{number} {what}{}", if number == 1 { "" } else { "s" }))
    };
    let gaps = of(gaps, "gap").map(|gaps| format!("{gaps}, where the file did not take the data for too long"));
    let chunks = of(overwritten, "chunk").map(|chunks| {
        format!(
            "{chunks} of events overwritten: unfinished events did not fit into the buffer (ESATTO_TRACE_BUFFER_KB)"
        )
    });
    // Gaps and overwritten chunks also precede packets.
    let is_explained = gaps.is_some() || chunks.is_some();
    let unexplained = of(if is_explained { 0 } else { after_loss }, "gap");
    let unexplained = unexplained.map(|gaps| format!("{gaps} between chunks of a thread"));
    let losses: Vec<String> = [gaps, chunks, unexplained].into_iter().flatten().collect();
    (!losses.is_empty()).then(|| format!("lacks events: {}; see docs/concepts/losses.md", losses.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_counted_in_words() {
        assert_eq!(in_words(0, 0, 0), None);
        let text = in_words(1, 2, 3).expect("losses");
        assert!(text.starts_with("lacks events: 1 gap, where"), "{text}");
        assert!(text.contains("; 2 chunks of events overwritten: "), "{text}");
        assert!(!text.contains("between chunks"), "the same losses: {text}");
        let text = in_words(0, 0, 1).expect("losses");
        assert!(text.starts_with("lacks events: 1 gap between chunks of a thread; see"), "{text}");
    }
}
