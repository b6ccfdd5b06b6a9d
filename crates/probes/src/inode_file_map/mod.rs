//! `linux.inode_file_map`: paths of the files whose inode numbers events of the kernel name.
//!
//! Paths that were found before come from a cache. For the others the data source waits a while,
//! then walks through the file systems in steps, until it has found all or has seen all files.
//! `docs/spec/probes.md` §18 tells what is written.
//!
//! Walking may wait for disks and servers. This data source must not share a thread with others
//! that have to be punctual.

mod folder_walk;
mod mount_table;
mod path_cache;

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use esatto::producer::TraceWriter;
use esatto_schema::inode_file_map::entry::Type;
use esatto_schema::{DataSourceDescriptor, InodeFileConfigReader, TracePacketWriter};
use rustix::time::ClockId;

use self::folder_walk::FolderWalk;
use self::mount_table::MountTable;
use self::path_cache::PathCache;
use crate::data_source::{Instance, Monotonic, Observed, SetupError};
use crate::instances::Source;
use crate::metatrace;

/// Parses a table of mounts, for the fuzzer.
pub fn fuzz(text: &[u8]) {
    let table = MountTable::parse(text);
    let lines = text.split(|&byte| byte == b'\n').count();
    assert!(table.len() <= lines, "at most one mount per line");
}

/// Inodes that wait for a walk. Events may name any number of them.
const MAX_WAITING_INODES: usize = 1 << 16;
/// Devices that are remembered. A machine has hardly more.
const MAX_SEEN_DEVICES: usize = 4096;
/// Files of a packet.
const ENTRIES_PER_PACKET: usize = 512;

const DEFAULT_SCAN_INTERVAL_MS: u32 = 10_000;
/// Milliseconds between the start of `linux.inode_file_map` and its walk through the folders
/// without `scan_delay_ms`.
pub const DEFAULT_SCAN_DELAY_MS: u32 = 10_000;
const DEFAULT_SCAN_BATCH_SIZE: u32 = 15_000;

/// Device and inode number of a file.
type FileKey = (u64, u64);

#[derive(Clone, Debug, PartialEq, Eq)]
struct FoundFile {
    path: PathBuf,
    kind: Type,
}

/// An instance of `linux.inode_file_map`.
#[derive(Debug)]
pub(crate) struct InodeFileMap {
    config: Config,
    /// File with the table of mounts.
    mountinfo: PathBuf,
    mounts: MountTable,
    cache: PathCache,
    /// Inodes that the next walk looks for, by their device.
    waiting: BTreeMap<u64, HashSet<u64>>,
    /// Inodes that the walk of now looks for.
    wanted: BTreeMap<u64, HashSet<u64>>,
    walk: Option<FolderWalk>,
    /// Next step of a walk, or its beginning.
    next_step: Option<Monotonic>,
    /// Devices that the trace has mount points of.
    seen_devices: BTreeSet<u64>,
    /// Files to be written; empty between turns.
    found: Vec<(FileKey, FoundFile)>,
}

#[derive(Debug)]
struct Config {
    interval: Duration,
    delay: Duration,
    batch: usize,
    may_walk: bool,
    /// If not empty, only devices with one of these mount points are walked through.
    mount_points: BTreeSet<PathBuf>,
    /// Roots to walk through instead of a mount point.
    roots: BTreeMap<PathBuf, Vec<PathBuf>>,
}

impl Config {
    fn new(config: &InodeFileConfigReader<'_>) -> Self {
        let or = |value: Option<u32>, default| value.filter(|&value| value != 0).unwrap_or(default);
        let ms = |value, default| Duration::from_millis(or(value, default).into());
        let path = |bytes: &[u8]| PathBuf::from(std::ffi::OsStr::from_bytes(bytes));
        let mapping = config
            .mount_point_mapping()
            .map(|mapping| (path(mapping.mountpoint().unwrap_or_default()), mapping.scan_roots().map(path).collect()));
        Self {
            interval: ms(config.scan_interval_ms(), DEFAULT_SCAN_INTERVAL_MS),
            delay: ms(config.scan_delay_ms(), DEFAULT_SCAN_DELAY_MS),
            batch: usize::try_from(or(config.scan_batch_size(), DEFAULT_SCAN_BATCH_SIZE)).unwrap_or(usize::MAX),
            may_walk: !config.do_not_scan().unwrap_or(false),
            mount_points: config.scan_mount_points().map(path).collect(),
            roots: mapping.collect(),
        }
    }
}

impl InodeFileMap {
    fn new(config: &InodeFileConfigReader<'_>, mountinfo: &Path) -> Result<Self, SetupError> {
        let mounts = MountTable::read(mountinfo);
        let mounts = mounts.map_err(|why| SetupError(format!("cannot read {mountinfo:?}: {why}; mount /proc")))?;
        Ok(Self {
            config: Config::new(config),
            mountinfo: mountinfo.to_owned(),
            mounts,
            cache: PathCache::default(),
            waiting: BTreeMap::new(),
            wanted: BTreeMap::new(),
            walk: None,
            next_step: None,
            seen_devices: BTreeSet::new(),
            found: Vec::new(),
        })
    }

    /// Returns whether the config lets walk through this device.
    fn may_walk(&self, device: u64) -> bool {
        let points = &self.config.mount_points;
        self.config.may_walk
            && (points.is_empty() || self.mounts.of_device(device).any(|mount| points.contains(&mount.point)))
    }

    fn begin_walk(&mut self) {
        if let Ok(mounts) = MountTable::read(&self.mountinfo) {
            self.mounts = mounts;
        }
        self.wanted = core::mem::take(&mut self.waiting);
        let mut walk = FolderWalk::default();
        for &device in self.wanted.keys() {
            self.roots(device).into_iter().for_each(|root| walk.add(root, device));
        }
        self.walk = Some(walk);
    }

    /// Returns the folders below which the files of a device are.
    fn roots(&self, device: u64) -> Vec<PathBuf> {
        let mapped = self.mounts.of_device(device).find_map(|mount| self.config.roots.get(&mount.point));
        if let Some(mapped) = mapped {
            return mapped.clone();
        }
        // One mount of the whole shows all files.
        let whole = self.mounts.of_device(device).find(|mount| mount.is_whole);
        match whole {
            Some(mount) => vec![mount.point.clone()],
            None => self.mounts.of_device(device).map(|mount| mount.point.clone()).collect(),
        }
    }

    fn step(&mut self, now: Monotonic, writer: &mut TraceWriter) {
        let _walking = metatrace::scope("inode walk");
        if self.walk.is_none() {
            self.begin_walk();
        }
        let Some(walk) = &mut self.walk else { return };
        let (wanted, waiting, found) = (&mut self.wanted, &mut self.waiting, &mut self.found);
        walk.step(self.config.batch, &mut |device, inode, kind, folder, name| {
            let Some(inodes) = wanted.get_mut(&device) else { return false };
            if inodes.remove(&inode) {
                if let Some(inodes) = waiting.get_mut(&device) {
                    inodes.remove(&inode);
                }
                found.push(((device, inode), FoundFile { path: folder.join(name), kind }));
            }
            if inodes.is_empty() {
                wanted.remove(&device);
            }
            wanted.contains_key(&device)
        });
        let is_done = walk.is_done();
        if is_done && walk.omitted > 0 {
            log::warn!("left out {} folders while looking for files; there are too many", walk.omitted);
        }
        self.write_found(writer);
        if !is_done {
            self.next_step = Some(now + self.config.interval);
            return;
        }
        self.walk = None;
        // At least the mount points of the others.
        for device in core::mem::take(&mut self.wanted).into_keys() {
            if !self.seen_devices.contains(&device) {
                self.write_packet(device, &[], writer);
            }
        }
        self.waiting.retain(|_, inodes| !inodes.is_empty());
        self.next_step = if self.waiting.is_empty() { None } else { Some(now + self.config.delay) };
    }

    /// Writes the files that were found, and keeps them.
    fn write_found(&mut self, writer: &mut TraceWriter) {
        let mut found = core::mem::take(&mut self.found);
        found.sort_unstable_by_key(|&(key, _)| key);
        for files in found.chunk_by(|((a, _), _), ((b, _), _)| a == b) {
            for files in files.chunks(ENTRIES_PER_PACKET) {
                self.write_packet(files[0].0.0, files, writer);
            }
        }
        for (key, file) in found.drain(..) {
            self.cache.insert(key, file);
        }
        self.found = found;
    }

    fn write_packet(&mut self, device: u64, files: &[(FileKey, FoundFile)], writer: &mut TraceWriter) {
        if self.seen_devices.len() < MAX_SEEN_DEVICES {
            self.seen_devices.insert(device);
        }
        let mut packet = writer.new_packet();
        let mut fields = packet.typed::<TracePacketWriter<'_>>();
        let now = rustix::time::clock_gettime(ClockId::Boottime);
        fields.timestamp(now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs());
        let mut map = fields.inode_file_map();
        map.block_device_id(device);
        for mount in self.mounts.of_device(device) {
            map.mount_points(mount.point.as_os_str().as_bytes());
        }
        for ((_, inode), file) in files {
            let mut entry = map.entries();
            entry.inode_number(*inode).paths(file.path.as_os_str().as_bytes()).r#type(file.kind);
        }
    }
}

impl Source for InodeFileMap {
    fn descriptor() -> DataSourceDescriptor {
        DataSourceDescriptor {
            name: Some("linux.inode_file_map".into()),
            will_notify_on_start: Some(true),
            will_notify_on_stop: Some(true),
            ..DataSourceDescriptor::default()
        }
    }

    fn set_up(instance: &Instance) -> Result<Self, SetupError> {
        let config = instance.config().inode_file_config().unwrap_or_default();
        Self::new(&config, Path::new("/proc/self/mountinfo"))
    }

    fn start(&mut self, _: Monotonic, _: &mut TraceWriter) {}

    fn deadline(&self) -> Option<Monotonic> {
        self.next_step
    }

    fn tick(&mut self, now: Monotonic, writer: &mut TraceWriter) {
        if self.next_step.is_some_and(|next| next <= now) {
            self.step(now, writer);
        }
    }

    fn observe(&mut self, observed: &Observed, writer: &mut TraceWriter) {
        if observed.inodes.is_empty() {
            return;
        }
        let mut waiting = self.waiting.values().map(HashSet::len).sum::<usize>();
        let mut was_read = false;
        for &(device, inode) in &observed.inodes {
            if !was_read && !self.mounts.has_device(device) {
                was_read = true;
                if let Ok(mounts) = MountTable::read(&self.mountinfo) {
                    self.mounts = mounts;
                }
            }
            if let Some(file) = self.cache.get((device, inode)) {
                self.found.push(((device, inode), file.clone()));
            } else if self.may_walk(device) && waiting < MAX_WAITING_INODES {
                // The walk of now may still come by.
                if let Some(wanted) = self.wanted.get_mut(&device) {
                    wanted.insert(inode);
                }
                waiting += usize::from(self.waiting.entry(device).or_default().insert(inode));
            }
        }
        self.write_found(writer);
        if !self.waiting.is_empty() && self.next_step.is_none() {
            self.next_step = Some(crate::worker::monotonic_now() + self.config.delay);
        }
    }
}

#[cfg(test)]
mod tests;
