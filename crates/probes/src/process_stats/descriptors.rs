//! [`Descriptors`]: the open files of a process that the trace has.

use super::slice::Slice;
use crate::proc_folder::ProcFolder;

/// Set of descriptors of a process that were written in the cache period.
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    /// A bit per descriptor.
    words: Vec<u64>,
}

/// Longest target that is written. The rest is left out.
pub(crate) const MAX_TARGET_BYTES: usize = 256;

/// Descriptors of a process that a poll looks at.
const MAX_LISTED_DESCRIPTORS: usize = 16 * 1024;

/// New descriptors of a process that a poll writes. The next poll goes on.
const MAX_NEW_DESCRIPTORS: usize = 1024;

/// Larger descriptors are left out.
const MAX_DESCRIPTOR: u32 = 1 << 20;

impl Descriptors {
    /// Adds the descriptors that are open now to the set. Those that were not there go to `new`.
    pub(crate) fn find_new(&mut self, proc: &ProcFolder, pid: i32, slice: &mut Slice, new: &mut Vec<u32>) {
        slice.spend(1);
        let Some(open) = proc.descriptors(pid) else { return };
        for descriptor in open.take(MAX_LISTED_DESCRIPTORS) {
            if descriptor < MAX_DESCRIPTOR && self.insert(descriptor) {
                slice.spend(1);
                new.push(descriptor);
                if new.len() == MAX_NEW_DESCRIPTORS {
                    break;
                }
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.words.clear();
    }

    /// Returns true if it was not there.
    fn insert(&mut self, descriptor: u32) -> bool {
        let (word, bit) = ((descriptor / 64) as usize, 1 << (descriptor % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        is_new
    }
}
