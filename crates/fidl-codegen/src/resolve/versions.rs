//! Which elements exist in the newest version of a library (`@available`).

use crate::error::Result;
use crate::syntax::{Attributes, Constant, ConstantPart, Modifier};

/// Advice of a deprecated element, if it has any.
pub(super) fn deprecation(attributes: &Attributes) -> Result<Option<String>> {
    let Some(available) = attributes.get("available") else {
        // Files from before versions: `[Deprecated = "advice"]`.
        let deprecated = attributes.get("deprecated");
        return Ok(deprecated.map(|attribute| attribute.text().unwrap_or("deprecated").to_owned()));
    };
    let mut deprecated = false;
    let mut note = None;
    for (name, value) in &available.arguments {
        match name.as_deref() {
            Some("deprecated") => {
                check_version(value)?;
                deprecated = true;
            }
            Some("note") => note = Some(value.as_text().ok_or_else(|| value.span.error("expected a string"))?),
            _ => {}
        }
    }
    Ok(deprecated.then(|| note.unwrap_or("deprecated").to_owned()))
}

/// Returns true if the element exists in the newest version.
pub(super) fn exists(attributes: &Attributes) -> Result<bool> {
    attributes.get("available").map_or(Ok(true), |available| exists_by(&available.arguments))
}

/// Returns true if the modifier holds in the newest version.
pub(super) fn holds(modifier: &Modifier) -> Result<bool> {
    exists_by(&modifier.arguments)
}

fn exists_by(arguments: &[(Option<String>, Constant)]) -> Result<bool> {
    let mut exists = true;
    for (name, value) in arguments {
        match name.as_deref() {
            // No version is newer than HEAD: everything that was added is there, and everything
            // that was removed is gone.
            Some("added" | "deprecated") => check_version(value)?,
            Some("removed" | "replaced") => {
                check_version(value)?;
                exists = false;
            }
            Some("platform" | "note" | "legacy" | "renamed") => {}
            Some(other) => {
                let known = "added, deprecated, removed, replaced, renamed, note, legacy and platform";
                return Err(value.span.error(format!("unknown argument `{other}`; known are {known}")));
            }
            None => return Err(value.span.error("expected a named argument, as in `added=1`")),
        }
    }
    Ok(exists)
}

fn check_version(value: &Constant) -> Result<()> {
    let is_version = match value.parts.as_slice() {
        [ConstantPart::Number(number)] => number.parse().is_ok_and(|number: u64| (1..1 << 63).contains(&number)),
        [ConstantPart::Name(path)] => path.parts == ["HEAD"] || path.parts == ["NEXT"],
        _ => false,
    };
    if is_version {
        return Ok(());
    }
    Err(value.span.error("expected a version: a number from 1, `NEXT` or `HEAD`"))
}
