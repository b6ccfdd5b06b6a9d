//! [`Usage`]: counts of the fields that a filter has met.

use std::collections::BTreeMap;

use esatto_protozero::wire;

/// Counts of fields by path.
///
/// A path is the field numbers from the filter's root down, each as a varint: `b"\x02\x07"` is
/// field 7 of the message in field 2. A count is positive if the field is allowed, even with
/// another wire type, and negative if it is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    counts: BTreeMap<Box<[u8]>, i64>,
    path: Vec<u8>,
}

/// Largest number of paths that are counted. Input can contain any number of them.
const MAX_PATHS: usize = 64 * 1024;

impl Usage {
    /// Iterates over all paths and counts, sorted by path.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], i64)> {
        self.counts.iter().map(|(path, count)| (&**path, *count))
    }

    /// Returns the field numbers of a path.
    pub fn fields(mut path: &[u8]) -> impl Iterator<Item = u32> + '_ {
        core::iter::from_fn(move || {
            let (field, size) = wire::decode_varint(path)?;
            path = &path[size..];
            Some((field & 0xffff_ffff) as u32)
        })
    }

    pub(crate) fn count(&mut self, path: impl Iterator<Item = u32>, allowed: bool) {
        self.path.clear();
        let mut varint = [0; wire::MAX_VARINT_SIZE];
        for field in path {
            let size = wire::encode_varint(field.into(), &mut varint);
            self.path.extend_from_slice(&varint[..size]);
        }
        let step = if allowed { 1 } else { -1 };
        if let Some(count) = self.counts.get_mut(&*self.path) {
            *count += step;
        } else if self.counts.len() < MAX_PATHS {
            self.counts.insert(self.path.as_slice().into(), step);
        }
    }
}
