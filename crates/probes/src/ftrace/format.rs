//! [`EventFormat`]: the `format` file of an event (`docs/spec/probes.md` §6).

/// Bytes of a file that are looked at. The fields of the largest events take a few KiB.
const MAX_FORMAT_BYTES: usize = 64 * 1024;
/// Fields of an event, common ones included.
const MAX_FIELDS_PER_EVENT: usize = 256;

/// A `format` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventFormat<'f> {
    pub(crate) name: &'f str,
    pub(crate) id: u16,
    /// Fields that all events have.
    pub(crate) common: Vec<FormatField<'f>>,
    /// The other fields.
    pub(crate) fields: Vec<FormatField<'f>>,
}

/// A field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FormatField<'f> {
    /// Type and name, as the file has them.
    pub(crate) declaration: &'f str,
    /// Empty if the declaration has no name that C accepts.
    pub(crate) name: &'f str,
    pub(crate) offset: u32,
    pub(crate) size: u32,
    pub(crate) is_signed: bool,
}

impl<'f> EventFormat<'f> {
    /// Parses a file. Returns `None` if it has no name, no id, or no common field.
    pub(crate) fn parse(file: &'f [u8]) -> Option<Self> {
        let value = |key: &str| lines(file).find_map(|line| line.strip_prefix(key)).map(str::trim);
        let name = value("name:").filter(|name| !name.is_empty())?;
        let id = value("ID:")?.parse().ok().filter(|id| *id != 0)?;
        let (common, fields): (Vec<_>, Vec<_>) =
            fields(file).take(MAX_FIELDS_PER_EVENT).partition(|field| field.name.starts_with("common_"));
        (!common.is_empty()).then_some(Self { name, id, common, fields })
    }
}

/// Iterates over the lines of a file that declare a field.
pub(crate) fn fields(file: &[u8]) -> impl Iterator<Item = FormatField<'_>> {
    lines(file).filter_map(field)
}

/// Lines before `print fmt:`. Lines that are not UTF-8 are left out.
fn lines(file: &[u8]) -> impl Iterator<Item = &str> {
    let file = &file[..file.len().min(MAX_FORMAT_BYTES)];
    let lines = file.split(|byte| *byte == b'\n').filter_map(|line| core::str::from_utf8(line).ok());
    lines.take_while(|line| !line.starts_with("print fmt:"))
}

fn field(line: &str) -> Option<FormatField<'_>> {
    let mut parts = line.split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?.trim();
    let (mut offset, mut size, mut is_signed) = (None, None, false);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", value)) => offset = value.parse().ok(),
            Some(("size", value)) => size = value.parse().ok(),
            Some(("signed", value)) => is_signed = value == "1",
            _ => {}
        }
    }
    let (offset, size): (u32, u32) = (offset?, size?);
    Some(FormatField { declaration, name: name(declaration), offset, size, is_signed })
}

/// Returns the name in a declaration: the last word before a length in brackets.
fn name(declaration: &str) -> &str {
    let end = if declaration.ends_with(']') { declaration.rfind('[') } else { None };
    let declared = declaration[..end.unwrap_or(declaration.len())].trim_end();
    let name = declared.rsplit(' ').next().unwrap_or_default();
    if is_identifier(name) { name } else { "" }
}

fn is_identifier(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    name.bytes().next().is_some_and(is_letter) && name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_last_word_before_brackets() {
        for (declaration, expected) in [
            ("int a", "a"),
            ("unsigned long args[6]", "args"),
            ("char buf[]", "buf"),
            ("__data_loc char[] name", "name"),
            ("const char * fmt", "fmt"),
            ("u8 *buf", ""),
            ("int a[2][3]", ""),
            ("int 2a", ""),
            ("", ""),
        ] {
            assert_eq!(name(declaration), expected, "{declaration}");
        }
    }

    #[test]
    fn a_file_without_name_id_or_common_field_is_no_format() {
        let file = "name: a\nID: 3\nformat:\n\tfield:int common_pid;\toffset:0;\tsize:4;\tsigned:1;\n";
        assert!(EventFormat::parse(file.as_bytes()).is_some());
        for part in ["name: a", "ID: 3", "common_"] {
            assert_eq!(EventFormat::parse(file.replace(part, "x").as_bytes()), None, "{part}");
        }
        for id in ["0", "65536", "-1", ""] {
            assert_eq!(EventFormat::parse(file.replace("ID: 3", &format!("ID: {id}")).as_bytes()), None, "{id}");
        }
    }

    #[test]
    fn fields_after_print_fmt_do_not_count() {
        let file = b"name: a\nID: 3\n\tfield:int common_pid;\toffset:0;\tsize:4;\tsigned:1;\n\
            print fmt: \"x\"\n\tfield:int b;\toffset:4;\tsize:4;\tsigned:1;\n";
        assert!(EventFormat::parse(file).unwrap().fields.is_empty());
    }
}
