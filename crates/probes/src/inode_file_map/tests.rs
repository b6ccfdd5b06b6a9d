use std::fs;
use std::os::unix::fs::MetadataExt as _;

use esatto_protozero::Owned as _;
use esatto_schema::inode_file_config::MountPointMappingEntry;
use esatto_schema::{InodeFileConfig, TracePacketReader};

use super::*;
use crate::test_writer::TestWriter;

/// A tree of files with a table of mounts that says that it is a device of its own.
struct Tree {
    folder: PathBuf,
}

const DEVICE: u64 = 0x801;

impl Tree {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("esatto-inodes-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        for n in 0..20 {
            fs::create_dir_all(folder.join(format!("disk/{n}/below"))).expect("a folder");
            fs::write(folder.join(format!("disk/{n}/below/file")), "").expect("a file");
        }
        std::os::unix::fs::symlink("/", folder.join("disk/0/link")).expect("a link");
        let table = format!("1 1 8:1 / {} rw - ext4 x rw\n", folder.join("disk").display());
        fs::write(folder.join("mountinfo"), table).expect("written");
        Self { folder }
    }

    fn source(&self, config: InodeFileConfig) -> InodeFileMap {
        let config = config.encode();
        InodeFileMap::new(&InodeFileConfigReader::new(&config), &self.folder.join("mountinfo")).expect("a table")
    }

    fn inode(&self, path: &str) -> u64 {
        fs::metadata(self.folder.join("disk").join(path)).expect("a file").ino()
    }

    fn path(&self, path: &str) -> String {
        self.folder.join("disk").join(path).display().to_string()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Gives the source inodes, and as many steps as it wants. Returns paths and kinds of the files in
/// the trace, and the number of steps.
fn find(source: &mut InodeFileMap, inodes: &[u64]) -> (Vec<(String, Type)>, usize) {
    let mut test = TestWriter::new();
    let mut writer = test.writer();
    let inodes = inodes.iter().map(|&inode| (DEVICE, inode)).collect();
    source.observe(&Observed { inodes, ..Observed::default() }, &mut writer);
    let mut steps = 0;
    while let Some(next) = source.deadline() {
        source.tick(next, &mut writer);
        steps += 1;
    }
    drop(writer);
    let mut found = Vec::new();
    for packet in test.packets() {
        let map = TracePacketReader::new(&packet).inode_file_map().expect("only these");
        assert_eq!(map.block_device_id(), Some(DEVICE));
        assert_eq!(map.mount_points().count(), 1);
        for entry in map.entries() {
            let path = entry.paths().next().expect("a path");
            found.push((String::from_utf8_lossy(path).into_owned(), entry.r#type().expect("a kind")));
        }
    }
    found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    (found, steps)
}

#[test]
fn files_are_found_by_a_walk_and_then_in_the_cache() {
    let tree = Tree::new("walk");
    let config = InodeFileConfig { scan_batch_size: Some(10), ..InodeFileConfig::default() };
    let mut source = tree.source(config);
    let inodes = [tree.inode("7/below/file"), tree.inode("3"), 0];
    let (found, steps) = find(&mut source, &inodes);
    assert_eq!(found, [(tree.path("3"), Type::DIRECTORY), (tree.path("7/below/file"), Type::FILE)]);
    assert!(steps > 3, "{steps} steps");
    let (found, steps) = find(&mut source, &inodes[..1]);
    assert_eq!((found, steps), (vec![(tree.path("7/below/file"), Type::FILE)], 0));
}

#[test]
fn a_walk_ends_when_all_files_are_found() {
    let tree = Tree::new("end");
    let mut source = tree.source(InodeFileConfig::default());
    assert_eq!(find(&mut source, &[tree.inode("0"), tree.inode("1")]).0.len(), 2);
    assert!(source.walk.is_none() && source.wanted.is_empty() && source.waiting.is_empty());
}

#[test]
fn the_config_says_where_to_look() {
    let tree = Tree::new("config");
    let inode = tree.inode("5/below/file");
    let config = InodeFileConfig { do_not_scan: Some(true), ..InodeFileConfig::default() };
    assert_eq!(find(&mut tree.source(config), &[inode]), (vec![], 0));

    let config = InodeFileConfig { scan_mount_points: vec!["/elsewhere".into()], ..InodeFileConfig::default() };
    assert_eq!(find(&mut tree.source(config), &[inode]), (vec![], 0));

    for (root, count) in [("5", 1), ("6", 0)] {
        let mapping = MountPointMappingEntry {
            mountpoint: Some(tree.path("").trim_end_matches('/').into()),
            scan_roots: vec![tree.path(root).into()],
            ..MountPointMappingEntry::default()
        };
        let config = InodeFileConfig { mount_point_mapping: vec![mapping], ..InodeFileConfig::default() };
        assert_eq!(find(&mut tree.source(config), &[inode]).0.len(), count);
    }
}

#[test]
fn the_first_walk_begins_after_the_delay() {
    let tree = Tree::new("delay");
    let config = InodeFileConfig { scan_delay_ms: Some(3_600_000), ..InodeFileConfig::default() };
    let mut source = tree.source(config);
    let mut writer = TestWriter::new().writer();
    let observed = Observed { inodes: vec![(DEVICE, 1)], ..Observed::default() };
    source.observe(&observed, &mut writer);
    let wait = source.deadline().expect("a walk") - crate::worker::monotonic_now();
    assert!(wait > Duration::from_secs(3000), "{wait:?}");
}
