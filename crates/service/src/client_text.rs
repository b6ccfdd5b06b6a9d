//! Names that strangers give: kept once, passed on by reference, and never longer than they need
//! be.

use std::sync::Arc;

/// A name that is kept in several places.
pub(crate) type Name = Arc<[u8]>;

/// Bytes of a name: of a producer, its SDK's version, a data source, a trigger, a session. The
/// original has no bound, but 128 KiB of a frame; Linux's longest path, which is what some
/// producers are called, has as much as this.
///
/// Longer names of producers are cut, because their only use is to be shown and matched. A data
/// source with a longer name is not registered, a config with a longer name of a session or a
/// trigger is refused, a call with a longer key is rejected.
pub(crate) const MAX_NAME_BYTES: usize = 4096;

/// Bytes of a text that tells a client why something is refused. What is longer is cut.
const MAX_ERROR_BYTES: usize = 4096;

/// As much of a name as is kept.
pub(crate) fn cut(name: &[u8]) -> &[u8] {
    &name[..name.len().min(MAX_NAME_BYTES)]
}

/// Cuts a text that quotes what strangers wrote to a length that fits into any message.
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
}
