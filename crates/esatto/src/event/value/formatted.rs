//! Formatted texts, such as those of `Debug` and `Display`. Text beyond 64 KiB is cut off.

use core::fmt::{self, Write as _};

use esatto_protozero::Message;

/// The longest formatted text; the rest is cut off.
const MAX_FORMATTED_BYTES: usize = 64 * 1024;

/// Writes a text into an open field of bytes.
pub(super) fn format_into(field: Message<'_>, text: fmt::Arguments<'_>) {
    struct Field<'m> {
        bytes: Message<'m>,
        left: usize,
    }

    impl fmt::Write for Field<'_> {
        fn write_str(&mut self, piece: &str) -> fmt::Result {
            let mut end = piece.len().min(self.left);
            while !piece.is_char_boundary(end) {
                end -= 1;
            }
            self.bytes.raw(&piece.as_bytes()[..end]);
            self.left -= end;
            if end == piece.len() { Ok(()) } else { Err(fmt::Error) }
        }
    }

    // It fails if the text is too long, or if a `Display` of the program fails. The text so far
    // stays.
    let _ = Field { bytes: field, left: MAX_FORMATTED_BYTES }.write_fmt(text);
}
