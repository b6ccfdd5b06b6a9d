//! [`Field`]: the fields of journal entries that a trace shows.

/// Field of a journal entry that a trace shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Pid,
    Tid,
    Uid,
    Gid,
    Priority,
    Identifier,
    Message,
    Comm,
    Exe,
    Unit,
    Hostname,
    Transport,
}

impl Field {
    /// Number of fields.
    pub(super) const COUNT: usize = 12;

    /// Bytes of the longest name.
    pub(super) const LONGEST_NAME: usize = b"SYSLOG_IDENTIFIER".len();

    /// Returns the field with this name in the journal.
    pub(super) fn of_name(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"_PID" => Self::Pid,
            b"_TID" => Self::Tid,
            b"_UID" => Self::Uid,
            b"_GID" => Self::Gid,
            b"PRIORITY" => Self::Priority,
            b"SYSLOG_IDENTIFIER" => Self::Identifier,
            b"MESSAGE" => Self::Message,
            b"_COMM" => Self::Comm,
            b"_EXE" => Self::Exe,
            b"_SYSTEMD_UNIT" => Self::Unit,
            b"_HOSTNAME" => Self::Hostname,
            b"_TRANSPORT" => Self::Transport,
            _ => return None,
        })
    }
}

/// Values of one entry's fields. Buffers are kept for the next entry.
#[derive(Debug, Default)]
pub(crate) struct Values {
    values: [Vec<u8>; Field::COUNT],
}

impl Values {
    pub(super) fn clear(&mut self) {
        self.values.iter_mut().for_each(Vec::clear);
    }

    /// Sets a value. If an entry has a field several times, the last value counts.
    pub(super) fn set(&mut self, field: Field, value: &[u8]) {
        let kept = &mut self.values[field as usize];
        kept.clear();
        kept.extend_from_slice(value);
    }

    /// Returns the value of a field that the entry has and that is not empty.
    pub(crate) fn text(&self, field: Field) -> Option<&[u8]> {
        Some(self.values[field as usize].as_slice()).filter(|value| !value.is_empty())
    }

    /// Returns the value of a field that is a decimal number.
    pub(crate) fn number(&self, field: Field) -> Option<u32> {
        self.text(field).and_then(parse_u32)
    }
}

/// Parses a decimal number without sign and spaces.
pub(super) fn parse_u32(digits: &[u8]) -> Option<u32> {
    let value = |value: u32, digit: &u8| {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 { None } else { value.checked_mul(10)?.checked_add(u32::from(digit)) }
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, value) }
}
