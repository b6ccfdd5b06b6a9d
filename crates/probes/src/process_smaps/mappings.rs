//! [`Mappings`]: the mappings of a process, from the lines of `/proc/PID/smaps`.

use std::collections::HashMap;

use esatto_schema::PackedSmapsWriter;

use super::fields::{FIELD_COUNT, Field, Fields};
use super::redaction::Redaction;

/// Mappings, aggregated by their names or one by one.
#[derive(Debug)]
pub(crate) struct Mappings {
    fields: Fields,
    is_aggregated: bool,
    all: Vec<Mapping>,
    ids: HashMap<Vec<u8>, u32>,
    names: Vec<Vec<u8>>,
    name_bytes: usize,
    /// Index of the mapping whose lines follow.
    current: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mapping {
    name: u32,
    count: u32,
    kb: [u64; FIELD_COUNT],
}

/// Mappings of a process that are recorded: twice what the kernel allows by default.
const MAX_MAPPINGS: usize = 128 * 1024;

/// Bytes of the names of a process. Mappings with further names have none.
const MAX_NAME_BYTES: usize = 4 << 20;

impl Mappings {
    pub(crate) fn new(fields: Fields, is_aggregated: bool) -> Self {
        let mut mappings = Self {
            fields,
            is_aggregated,
            all: Vec::new(),
            ids: HashMap::new(),
            names: Vec::new(),
            name_bytes: 0,
            current: None,
        };
        mappings.clear();
        mappings
    }

    /// Begins with another process.
    pub(crate) fn clear(&mut self) {
        (self.current, self.name_bytes) = (None, 0);
        self.ids.clear();
        self.names.clear();
        self.all.clear();
        // The first name is the empty one. It has a mapping when mappings are aggregated.
        self.ids.insert(Vec::new(), 0);
        self.names.push(Vec::new());
        if self.is_aggregated {
            self.all.push(Mapping::default());
        }
    }

    /// Reads a line: the first of a mapping, or a counter of the last one.
    pub(crate) fn read_line(&mut self, line: &[u8]) {
        let key = line.iter().take_while(|&&byte| byte != b' ').count();
        match line.get(..key).and_then(|key| key.strip_suffix(b":")) {
            None if key > 0 => self.begin_mapping(mapping_name(line)),
            Some(key_name) => {
                let field = Field::of_key(key_name).filter(|&field| self.fields.contains(field));
                if let (Some(index), Some(field)) = (self.current, field) {
                    let kb = &mut self.all[index].kb[field as usize];
                    *kb = kb.saturating_add(decimal(&line[key..]));
                }
            }
            None => {}
        }
    }

    /// Writes what was read.
    pub(crate) fn write(&self, redaction: &Redaction, packed: &mut PackedSmapsWriter<'_>) {
        let mut scratch = Vec::new();
        for name in &self.names {
            packed.string_table(redaction.apply(name, &mut scratch));
        }
        if self.is_aggregated {
            packed.aggregate_count(self.all.iter().map(|mapping| mapping.count));
        } else {
            packed.name_id(self.all.iter().map(|mapping| mapping.name));
        }
        for field in Field::ALL {
            if self.fields.contains(field) {
                field.write(packed, self.all.iter().map(|mapping| mapping.kb[field as usize]));
            }
        }
    }

    fn begin_mapping(&mut self, name: &[u8]) {
        let name = self.intern(name);
        let index = if self.is_aggregated { name as usize } else { self.all.len() };
        if index >= MAX_MAPPINGS {
            self.current = None;
            return;
        }
        if index == self.all.len() {
            self.all.push(Mapping { name, ..Mapping::default() });
        }
        self.all[index].count += 1;
        self.current = Some(index);
    }

    fn intern(&mut self, name: &[u8]) -> u32 {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        if self.name_bytes + name.len() > MAX_NAME_BYTES || self.names.len() >= MAX_MAPPINGS {
            return 0;
        }
        let id = self.names.len() as u32;
        self.name_bytes += name.len();
        self.names.push(name.to_vec());
        self.ids.insert(name.to_vec(), id);
        id
    }
}

/// Returns the last column of the first line of a mapping; it may have blanks.
fn mapping_name(line: &[u8]) -> &[u8] {
    let mut rest = line;
    for _ in 0..5 {
        let column = rest.iter().take_while(|&&byte| byte != b' ').count();
        let blanks = rest[column..].iter().take_while(|&&byte| byte == b' ').count();
        rest = &rest[column + blanks..];
    }
    rest
}

fn decimal(text: &[u8]) -> u64 {
    let digits = text.iter().skip_while(|&&byte| byte == b' ').take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |value: u64, digit| value.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_blanks() {
        assert_eq!(mapping_name(b"7f-8f r-xp 00000000 00:00 0            [vdso]"), b"[vdso]");
        assert_eq!(mapping_name(b"7f-8f r-xp 00000000 fe:00 12   /a b: (deleted)"), b"/a b: (deleted)");
        assert_eq!(mapping_name(b"7f-8f rw-p 00000000 00:00 0 "), b"");
        assert_eq!(mapping_name(b"7f"), b"");
    }
}
