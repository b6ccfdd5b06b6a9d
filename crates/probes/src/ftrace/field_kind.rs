//! [`FieldKind`]: what the kernel stores in a field, and which types of the schema take it.

use super::format::FormatField;
use super::schema::FieldType;

/// Type of a field, as the kernel stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Signed(Width),
    Unsigned(Width),
    Bool,
    Pid,
    /// Pid of the thread that was running.
    CommonPid,
    Inode(Width),
    Device(Width),
    /// Address in the kernel.
    Address(Width),
    /// Characters in the event, which end at the first NUL.
    FixedString,
    /// Characters up to the end of the event.
    RestString,
    /// Address of a string that `printk_formats` lists.
    ConstantString(Width),
    /// Where in the event the string is.
    DynamicString(Origin),
    DynamicBytes(Origin),
    /// The six arguments of a system call.
    Arguments(Width),
}

/// Size of a number in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Width {
    W1 = 1,
    W2 = 2,
    W4 = 4,
    W8 = 8,
}

/// Place from which the offset of dynamic data counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The begin of the event (`__data_loc`).
    Event,
    /// The end of the field (`__rel_loc`).
    Field,
}

/// Number of arguments of a system call in `raw_syscalls/sys_enter`.
pub(crate) const ARGUMENTS: usize = 6;

impl FieldKind {
    /// Finds the kind of a field. The first rule that matches decides. Returns `None` for arrays
    /// and structures that no rule describes.
    pub(crate) fn of(field: &FormatField<'_>) -> Option<Self> {
        let declaration = field.declaration;
        let width = Width::of(field.size);
        let word = width.filter(|width| *width >= Width::W4);
        let starts = |prefix: &str| declaration.starts_with(prefix);
        if is_char_array(declaration) {
            return Some(Self::FixedString);
        }
        for (marker, origin) in [("__data_loc ", Origin::Event), ("__rel_loc ", Origin::Field)] {
            if let Some((_, element)) = declaration.split_once(marker) {
                let is_bytes = ["u8[] ", "__u8[] ", "unsigned char[] "].iter().any(|bytes| element.starts_with(bytes));
                let kind = if is_bytes { Self::DynamicBytes(origin) } else { Self::DynamicString(origin) };
                return (field.size == 4).then_some(kind);
            }
        }
        if declaration == "unsigned long args[6]" && matches!(field.size, 24 | 48) {
            return Some(Self::Arguments(if field.size == 24 { Width::W4 } else { Width::W8 }));
        }
        if declaration.contains("char[] ") || declaration.contains("char * ") {
            return word.map(Self::ConstantString);
        }
        match width {
            _ if (starts("void*") || starts("void *")) && word.is_some() => word.map(Self::Address),
            _ if starts("char ") && field.size == 0 => Some(Self::RestString),
            Some(_) if starts("bool ") => Some(Self::Bool),
            _ if (starts("ino_t ") || starts("i_ino ")) && word.is_some() => word.map(Self::Inode),
            _ if starts("dev_t ") && word.is_some() => word.map(Self::Device),
            // As events of the page cache declare it.
            Some(Width::W8) if declaration == "unsigned long i_ino" => word.map(Self::Inode),
            Some(Width::W4) if starts("pid_t ") => Some(Self::Pid),
            Some(Width::W4) if declaration.contains("common_pid") => Some(Self::CommonPid),
            Some(width) if field.is_signed => Some(Self::Signed(width)),
            Some(width) => Some(Self::Unsigned(width)),
            None => None,
        }
    }

    /// True if the field says where in the event its data is.
    pub(crate) const fn is_dynamic(self) -> bool {
        matches!(self, Self::DynamicString(_) | Self::DynamicBytes(_))
    }

    /// True if the schema's type has room for every value of this kind.
    pub(crate) fn fits(self, field: FieldType) -> bool {
        use FieldType::{Bytes, Int32, Int64, String, Uint32, Uint64};
        match self {
            Self::Signed(Width::W8) => field == Int64,
            Self::Signed(_) | Self::Pid | Self::CommonPid => matches!(field, Int32 | Int64),
            Self::Unsigned(Width::W8) => field == Uint64,
            Self::Unsigned(_) | Self::Bool => matches!(field, Uint32 | Uint64),
            Self::Inode(_) | Self::Device(_) | Self::Address(_) | Self::Arguments(_) => field == Uint64,
            Self::FixedString | Self::RestString | Self::ConstantString(_) | Self::DynamicString(_) => field == String,
            Self::DynamicBytes(_) => field == Bytes,
        }
    }

    /// Returns the type that a field of this kind has in the descriptor of a generic event.
    pub(crate) const fn generic_type(self) -> FieldType {
        match self {
            Self::Signed(_) | Self::Pid | Self::CommonPid => FieldType::Int64,
            Self::FixedString | Self::RestString | Self::ConstantString(_) | Self::DynamicString(_) => {
                FieldType::String
            }
            Self::DynamicBytes(_) => FieldType::Bytes,
            _ => FieldType::Uint64,
        }
    }
}

impl Width {
    const fn of(size: u32) -> Option<Self> {
        match size {
            1 => Some(Self::W1),
            2 => Some(Self::W2),
            4 => Some(Self::W4),
            8 => Some(Self::W8),
            _ => None,
        }
    }
}

/// True for `char NAME[LENGTH]`, also after a qualifier such as `unsigned`.
fn is_char_array(declaration: &str) -> bool {
    let Some((_, array)) = declaration.split_once("char ") else { return false };
    let Some((name, length)) = array.split_once('[') else { return false };
    let is_word =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_word(name) && length.strip_suffix(']').is_some_and(is_word)
}
