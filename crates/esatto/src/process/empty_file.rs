//! Tells the user why the file that a program wrote itself has no event.

use std::env;
use std::path::Path;

use crate::category::{known, registry};
use crate::session::Session;
use crate::{connection, diagnostics, sequence};

/// Reports the reason if this process has recorded no event. Call it before the recording ends.
/// `variable` is the environment variable that chooses the categories. Returns true if the reason
/// is the choice of categories.
pub(super) fn explain(path: &Path, session: &Session, variable: &str) -> bool {
    // After a shutdown all categories are off, whatever the variable says.
    if sequence::has_any_begun() || connection::handle().is_none() {
        return false;
    }
    let known = known::Names::all();
    let is_any_on = registry::all().iter().any(|category| category.instances() != 0);
    let is_of_value = !is_any_on && !known.is_empty();
    let reason = if !is_of_value {
        "no trace point ran while the file was written; keep the recording until the end of `main` with \
         `let _trace = …`, not `let _ = …`; if the events come from `tracing` or `log`, look at their filters \
         (`RUST_LOG`)"
            .to_owned()
    } else if let Some(left_out) = session.left_out_by_tags() {
        let tags = left_out.tags().iter().map(|tag| format!("tag:{tag}")).collect::<Vec<_>>().join(",");
        match env::var_os(variable) {
            Some(_) => format!("{left_out}; add {tags} to {variable}"),
            None => format!("{left_out}; set {variable}={tags}"),
        }
    } else {
        let value = env::var(variable).ok();
        let patterns = value.iter().flat_map(|value| value.split(',')).map(str::trim);
        let wanted = patterns.filter(|pattern| !pattern.starts_with('-'));
        let remedy = known.remedy(wanted.map(str::as_bytes));
        let quoted = value.as_ref().map_or_else(String::new, |value| format!(" {value:?}"));
        format!("{variable}{quoted} leaves out all categories{remedy}")
    };
    diagnostics::say_once(format!("{} has no event: {reason}", path.display()));
    is_of_value
}
