//! The text that replaces a redacted one (`docs/spec/protozero.md` §14).

use core::ops::Range;

/// Replacement of a redacted text. It is cut if it is too long, and continued with [`FILLER`] if it
/// is too short.
const REDACTED: &[u8] = b"P60REDACTED";
const FILLER: u8 = b'-';

/// Overwrites the texts of all groups.
pub(super) fn redact_all(text: &mut [u8], groups: &[Option<Range<usize>>]) {
    for group in groups.iter().flatten() {
        if let Some(text) = text.get_mut(group.clone()) {
            redact(text);
        }
    }
}

/// Overwrites a text.
pub(super) fn redact(text: &mut [u8]) {
    let size = text.len().min(REDACTED.len());
    text[..size].copy_from_slice(&REDACTED[..size]);
    text[size..].fill(FILLER);
}
