//! [`Filter`]: which entries of the journal a session wants.

use esatto_schema::SystemdJournaldConfigReader;

use super::field::{Field, parse_u32};

/// Which entries a session wants. An entry has to match each of the lists that are not empty, and
/// the priority.
#[derive(Debug)]
pub(crate) struct Filter {
    /// The least important priority; 0 is the most important one.
    last_priority: u32,
    /// Sorted, as the units.
    identifiers: Vec<Vec<u8>>,
    units: Vec<Vec<u8>>,
}

/// Matches of the fields of an entry so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matched {
    priority: bool,
    identifier: bool,
    unit: bool,
}

/// Priority of debug messages, the least important one.
const LOWEST_PRIORITY: u32 = 7;

impl Filter {
    pub(crate) fn new(config: &SystemdJournaldConfigReader<'_>) -> Self {
        let sorted = |texts: &mut dyn Iterator<Item = &[u8]>| {
            let mut texts: Vec<Vec<u8>> = texts.map(<[u8]>::to_vec).collect();
            texts.sort_unstable();
            texts
        };
        Self {
            last_priority: config.min_prio().unwrap_or(LOWEST_PRIORITY),
            identifiers: sorted(&mut config.filter_identifiers()),
            units: sorted(&mut config.filter_units()),
        }
    }

    /// Returns the state before the first field. An entry without priority never matches.
    pub(super) fn start(&self) -> Matched {
        Matched { priority: false, identifier: self.identifiers.is_empty(), unit: self.units.is_empty() }
    }

    /// Adds a field. An entry may have a field several times; it matches if one of them does.
    pub(super) fn add(&self, matched: &mut Matched, field: Field, value: &[u8]) {
        let has = |texts: &[Vec<u8>]| texts.binary_search_by(|text| text.as_slice().cmp(value)).is_ok();
        match field {
            Field::Priority => {
                // Priorities are compared as texts, so `06` is none.
                let is_number = value.len() == 1 || !value.starts_with(b"0");
                matched.priority |=
                    is_number && parse_u32(value).is_some_and(|priority| priority <= self.last_priority);
            }
            Field::Identifier => matched.identifier |= has(&self.identifiers),
            Field::Unit => matched.unit |= has(&self.units),
            _ => {}
        }
    }
}

impl Matched {
    pub(super) const fn all(self) -> bool {
        self.priority && self.identifier && self.unit
    }
}
