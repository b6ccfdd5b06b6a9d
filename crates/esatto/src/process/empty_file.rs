//! Tells the user why the file that a program wrote itself has no event.

use std::env;
use std::path::Path;

use crate::category::registry;
use crate::{connection, diagnostics, sequence};

/// Names that the message lists.
const MAX_NAMES: usize = 20;

/// Reports the reason if this process has recorded no event. Call it before the recording ends.
/// `variable` is the environment variable that chooses the categories.
pub(super) fn explain(path: &Path, variable: &str) {
    // After a shutdown all categories are off, whatever the variable says.
    if sequence::has_any_begun() || connection::handle().is_none() {
        return;
    }
    let (mut known, mut is_any_on) = (Vec::new(), false);
    registry::for_each(|category| {
        is_any_on |= category.instances() != 0;
        known.push(category.name());
    });
    let reason = if is_any_on || known.is_empty() {
        "no trace point ran while the file was written; keep the recording until the end of `main` with \
         `let _trace = …`, not `let _ = …`"
            .to_owned()
    } else {
        let more = known.len().saturating_sub(MAX_NAMES);
        known.truncate(MAX_NAMES);
        let patterns = env::var(variable).map_or_else(|_| String::new(), |value| format!(" {value:?}"));
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{variable}{patterns} leaves out all categories; known are: {}{more}", known.join(", "))
    };
    diagnostics::say_once(format!("{} has no event: {reason}", path.display()));
}
