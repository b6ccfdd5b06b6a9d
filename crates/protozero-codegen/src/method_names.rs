//! Names of the methods of writers and readers, and of the fields of values.

use std::collections::HashSet;

use crate::field::Field;
use esatto_rust_text::identifiers;

/// Methods that every writer has in addition to those of its fields.
pub(crate) const WRITER_METHODS: &[&str] = &["message", "from", "into"];
/// Methods that every reader has in addition to those of its fields.
pub(crate) const READER_METHODS: &[&str] =
    &["new", "parse", "decode", "decoder", "as_bytes", "fields", "unknown_fields", "check", "from", "into"];
/// Fields that every value type has in addition to those of the schema.
pub(crate) const VALUE_FIELDS: &[&str] = &["unknown_fields"];

/// Ends the name of a method that takes an encoded message.
pub(crate) const RAW: &str = "_raw";
/// Ends the name of a method that begins a packed field, to append its values one by one.
pub(crate) const BEGIN: &str = "_begin";
/// Ends the name of a method that appends an entry of a map.
pub(crate) const ENTRY: &str = "_entry";

/// Appends underscores to the name of a field until its methods, and its field of a value, have
/// names that are not in `taken`. Then takes these names.
pub(crate) fn make_unique(field: &mut Field, taken: &mut HashSet<String>) {
    loop {
        let plain =
            [WRITER_METHODS, READER_METHODS, VALUE_FIELDS].map(|reserved| identifiers::method(&field.name, reserved));
        let mut wanted: Vec<String> = plain.iter().map(|name| name.trim_start_matches("r#").to_owned()).collect();
        wanted.extend(field.lazy.then(|| format!("{}{RAW}", field.name)));
        wanted.extend(field.packed.then(|| format!("{}{BEGIN}", field.name)));
        wanted.extend(field.entry.as_ref().map(|_| format!("{}{ENTRY}", field.name)));
        if wanted.iter().all(|name| !taken.contains(name)) {
            return taken.extend(wanted);
        }
        field.name.push('_');
    }
}
