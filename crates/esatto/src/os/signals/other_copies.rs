//! Other copies of this crate in the process that also catch signals: other versions of it, and
//! those of plugins.
//!
//! Each copy takes the handler that was there before for one of the program, which decides how the
//! process ends. So of two copies, each would leave the end to the other. Therefore each shows its
//! handler, and those that were there before, in a file in memory, which the others find by its
//! name among the descriptors of the process.

use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::fmt::Write as _;
use std::os::fd::IntoRawFd as _;

use super::action::ENDING;
use crate::os::memory_file;

const NAME: &str = "esatto-signals";
/// Copies that are told apart from the program. There are hardly ever two.
const COPIES: usize = 8;
/// The longest text of a file.
const TEXT_BYTES: u64 = 128;

/// The handlers that a copy shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// Address of its handler.
    pub(super) handler: usize,
    /// Addresses of the handlers before it, in the order of [`ENDING`]; 0: none.
    pub(super) previous: [usize; ENDING.len()],
}

/// The same, of the copies that were found. A handler may read them.
struct Known {
    handler: AtomicUsize,
    previous: [AtomicUsize; ENDING.len()],
}

static KNOWN: [Known; COPIES] =
    [const { Known { handler: AtomicUsize::new(0), previous: [const { AtomicUsize::new(0) }; ENDING.len()] } }; COPIES];

/// Shows the handlers of this copy to the others.
pub(super) fn show(process: c_int, shown: Shown) {
    let text = text_of(process, shown);
    // Without such a file, the other copies do not know of this one.
    let Ok(mut file) = memory_file::create(NAME) else { return };
    if std::io::Write::write_all(&mut file, text.as_bytes()).is_ok() {
        // Open for ever, as the handler is there for ever.
        let _ = file.into_raw_fd();
    }
}

/// Looks for other copies. A handler must not call this.
pub(super) fn find(process: c_int, own: usize) {
    let others = memory_file::with_name(NAME, TEXT_BYTES).filter_map(|text| parse(&text, process));
    let others = others.filter(|shown| shown.handler != own);
    for (known, shown) in KNOWN.iter().zip(others) {
        for (to, from) in known.previous.iter().zip(shown.previous) {
            to.store(from, Ordering::Relaxed);
        }
        known.handler.store(shown.handler, Ordering::Release);
    }
}

/// Returns the handler before this one, for the signal at this place, if this one is that of
/// another copy.
pub(super) fn before(handler: usize, place: usize) -> Option<usize> {
    let known = KNOWN.iter().find(|known| handler != 0 && known.handler.load(Ordering::Acquire) == handler)?;
    Some(known.previous[place].load(Ordering::Relaxed))
}

/// Returns the handlers from this one on, as long as each is that of another copy, and the first
/// one that is not.
pub(super) fn chain(first: usize, place: usize) -> impl Iterator<Item = usize> {
    // Two that name each other would make a circle.
    core::iter::successors(Some(first), move |handler| before(*handler, place)).take(COPIES + 1)
}

fn text_of(process: c_int, shown: Shown) -> String {
    let mut text = format!("{process} {:x}", shown.handler);
    for previous in shown.previous {
        // Writing to a string cannot fail.
        let _ = write!(text, " {previous:x}");
    }
    text
}

/// Reads the text of a file, if it is of this process: a forked child inherits those of its parent.
fn parse(text: &str, process: c_int) -> Option<Shown> {
    let mut words = text.split(' ');
    if words.next()?.parse() != Ok(process) {
        return None;
    }
    let mut address = || usize::from_str_radix(words.next()?, 16).ok();
    let shown = Shown { handler: address()?, previous: [address()?, address()?, address()?] };
    words.next().is_none().then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_of_one_process() {
        let shown = Shown { handler: 0x7f00_1234, previous: [0, usize::MAX, 5] };
        let text = text_of(42, shown);
        assert_eq!(parse(&text, 42), Some(shown));
        assert_eq!(parse(&text, 43), None);
        for wrong in ["", "42", "42 1 2 3", "42 1 2 3 4 5", "42 1 2 3 x", "x 1 2 3 4"] {
            assert_eq!(parse(wrong, 42), None, "{wrong:?}");
        }
    }
}
