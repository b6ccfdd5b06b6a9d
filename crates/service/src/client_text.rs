//! Names and texts from clients, with limits on their length.

use std::sync::Arc;

/// A name that several tables share.
pub(crate) type Name = Arc<[u8]>;

/// Bytes of a name: of a producer, its SDK's version, a data source, a trigger, a session.
///
/// The original has no limit but the 128 KiB of a frame. Linux's longest path has this length, and
/// some producers are named after their path.
///
/// The service cuts longer names of producers, because they are only shown and matched. It does not
/// register a data source with a longer name. It refuses a config with a longer name of a session
/// or a trigger, and rejects a call with a longer key.
pub(crate) const MAX_NAME_BYTES: usize = 4096;

/// Bytes of a name in a log line. The service cuts longer names there.
const MAX_LOGGED_NAME_BYTES: usize = 100;

/// Bytes of an error text for a client. The service cuts longer texts.
const MAX_ERROR_BYTES: usize = 4096;

/// Cuts a name to the length that the service keeps.
pub(crate) fn cut(name: &[u8]) -> &[u8] {
    &name[..name.len().min(MAX_NAME_BYTES)]
}

/// Quotes a name for the log: escaped, and cut so that there is room for the rest of the line.
pub(crate) fn quoted(name: &[u8]) -> String {
    let shown = &name[..name.len().min(MAX_LOGGED_NAME_BYTES)];
    let dots = if shown.len() < name.len() { "…" } else { "" };
    format!("{:?}{dots}", String::from_utf8_lossy(shown))
}

/// Cuts a text that quotes clients to a length that fits into any message.
pub(crate) fn cut_text(mut text: String) -> String {
    if text.len() > MAX_ERROR_BYTES {
        let end = (0..=MAX_ERROR_BYTES).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut_text("short".to_owned()), "short");
        let cut = cut_text("ä".repeat(5000) + "x");
        assert!(cut.len() <= MAX_ERROR_BYTES + 3 && cut.ends_with("ä…"));
        assert_eq!(super::cut(&[7; 5000]).len(), MAX_NAME_BYTES);
    }

    #[test]
    fn names_in_the_log_are_escaped_and_cut() {
        assert_eq!(quoted(b"a\nb"), "\"a\\nb\"");
        assert_eq!(quoted(&[b'x'; 101]), format!("\"{}\"…", "x".repeat(100)));
    }
}
