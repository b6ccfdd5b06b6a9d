//! [`PathCache`]: paths that were found recently.

use std::collections::{BTreeMap, HashMap};

use super::{FileKey, FoundFile};

/// Paths that are kept, as by Perfetto.
const MAX_CACHED_PATHS: usize = 1000;

/// The paths that were asked for last.
#[derive(Debug, Default)]
pub(super) struct PathCache {
    /// Files, with the number of their last use.
    files: HashMap<FileKey, (FoundFile, u64)>,
    /// Files by the number of their last use.
    uses: BTreeMap<u64, FileKey>,
    last_use: u64,
}

impl PathCache {
    pub(super) fn get(&mut self, key: FileKey) -> Option<&FoundFile> {
        let (file, used) = self.files.get_mut(&key)?;
        self.last_use += 1;
        self.uses.remove(used);
        *used = self.last_use;
        self.uses.insert(self.last_use, key);
        Some(file)
    }

    pub(super) fn insert(&mut self, key: FileKey, file: FoundFile) {
        self.last_use += 1;
        if let Some((_, used)) = self.files.insert(key, (file, self.last_use)) {
            self.uses.remove(&used);
        }
        self.uses.insert(self.last_use, key);
        if self.files.len() > MAX_CACHED_PATHS {
            if let Some((_, oldest)) = self.uses.pop_first() {
                self.files.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use esatto_schema::inode_file_map::entry::Type;

    use super::*;

    #[test]
    fn the_path_that_was_not_used_longest_makes_room() {
        let file = |n: u64| FoundFile { path: n.to_string().into(), kind: Type::FILE };
        let mut cache = PathCache::default();
        for n in 0..1000 {
            cache.insert((1, n), file(n));
        }
        assert!(cache.get((1, 0)).is_some());
        cache.insert((1, 1000), file(1000));
        cache.insert((1, 1000), file(1001));
        assert!(cache.get((1, 1)).is_none());
        assert_eq!(cache.get((1, 0)), Some(&file(0)));
        assert_eq!(cache.get((1, 1000)), Some(&file(1001)));
        assert_eq!((cache.files.len(), cache.uses.len()), (1000, 1000));
    }
}
